// Serves a storage port: a plain synchronous RAM in a buffer of bytes. Values are arrays of words of
// 64 bits, the least significant first.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace driver {

struct Buffer {
  uint8_t *bytes;
  uint64_t size;
};

} // namespace driver

namespace storage {

// Bytes: of a word of the storage. Both return false past the end of the buffer.
template <size_t Bytes>
inline bool read(const driver::Buffer &buffer, const uint64_t *enable, const uint64_t *address,
                 uint64_t *data) {
  if (!enable[0]) return true;
  if (address[0] >= buffer.size / Bytes) return false;
  std::memcpy(data, buffer.bytes + address[0] * Bytes, Bytes);
  return true;
}

template <size_t Bytes>
inline bool write(const driver::Buffer &buffer, const uint64_t *enable, const uint64_t *address,
                  const uint64_t *data, const uint64_t *mask) {
  if (!enable[0]) return true;
  if (address[0] >= buffer.size / Bytes) return false;
  uint8_t *to = buffer.bytes + address[0] * Bytes;
  const uint8_t *from = reinterpret_cast<const uint8_t *>(data);
  bool all = true;
  for (size_t i = 0; i < Bytes; i += 64)
    all &= mask[i / 64] == (Bytes - i >= 64 ? ~uint64_t(0) : (uint64_t(1) << (Bytes - i) % 64) - 1);
  if (all) {
    std::memcpy(to, from, Bytes);
  } else {
    for (size_t i = 0; i < Bytes; i++)
      if (mask[i / 64] >> i % 64 & 1) to[i] = from[i];
  }
  return true;
}

} // namespace storage
