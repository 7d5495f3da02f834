"""What comes from elsewhere or leaves: messages of other libraries, files, exports, packs, and knowledge that agents share."""
