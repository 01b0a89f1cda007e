"""What commands do with n-best lists: columns added, the best hypothesis of each chosen."""
