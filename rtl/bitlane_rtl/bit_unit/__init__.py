"""What is computed: logic, shifts and counts on lanes. Knows neither memory nor addresses."""
