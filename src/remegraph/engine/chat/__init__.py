"""Calls of a chat model: tasks as prompts, answers as checked operations."""
