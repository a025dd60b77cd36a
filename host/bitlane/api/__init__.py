"""The public names of `bitlane` that compute: devices, functions, and the array API."""
