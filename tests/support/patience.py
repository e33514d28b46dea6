"""How long a test waits for something before it takes it to hang."""

#: Seconds. Only a hang lasts as long, on however busy a machine.
HANG = 600.0
