"""People label rows on a page of this machine: what is asked (`task`), of what (`units`, `order`), where it is kept
(`store`), how far raters agree (`agreement`, `studies`), the page and its gate (`app`), labels (`export`), and the
process that listens (`run`).
"""
