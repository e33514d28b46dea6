"""What did the model answer?

The steps from what a server sent to the values of a verdict, in their order. Each quirk of a model or a server belongs
to one of them.

1. What came (`reply`): text, end and tokens of a completion; a tool's arguments or a refusal in place of a text.
2. What was said (`thoughts`): without thoughts, invisible characters, a template's last tokens, DSPy's own markers.
3. What it holds, as the prompt's form asks for it:
   - a score (`scores`): an object (`objects`), a table, a labelled line, a box, a bare number, a sentence;
   - scores by criteria, or a list of criteria (`criteria`);
   - a word out of several (`words`).
4. Whether that counts (`reading`): on the scale, one and not several, not cut off in its middle.
5. How likely it was (`likely`): the expectation over the tokens at its place.

`reading.read` goes through them for every form of answer. A form that has parts of its own reads them in its own file,
as `openlgauge.reading` does with errors.
"""
