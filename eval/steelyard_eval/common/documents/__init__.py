"""The JSON documents of all jobs, as types: the reference of their keys (docs/report.md).

A key that is not required is one that only some documents have, or that files of others may leave out. Every
document is an `AnsweredDocument`.
"""
