"""What a job answers: the structs, the sentences made of them, and the document on disk."""
