"""Mode ``auto``: start in Amaranth's simulator, compile in the background, hand over."""
