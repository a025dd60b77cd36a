"""The way of the data: readers, bit unit, repack, writer, and the registers between them."""
