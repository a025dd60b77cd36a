"""The bit unit: logic, shifts and counts on lanes. It handles neither memory nor addresses."""
