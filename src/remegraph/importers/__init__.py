"""Imports: messages of other libraries, files of conversations, memories of other systems."""
