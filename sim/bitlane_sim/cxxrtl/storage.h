// Serves a storage port: a plain synchronous RAM in a buffer of bytes. Values are arrays of chunks of
// 32 or 64 bits, the least significant first.

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

// The lowest 64 bits of a value of `Bits`.
template <size_t Bits, class Chunk> inline uint64_t number(const Chunk *data) {
  constexpr size_t chunk = 8 * sizeof(Chunk);
  return Bits > chunk && chunk < 64 ? data[0] | uint64_t(data[1]) << chunk % 64 : data[0];
}

// Bytes: of a word of the storage. Both return false past the end of the buffer.
template <size_t Bytes, size_t AddressBits, class Chunk>
inline bool read(const driver::Buffer &buffer, const Chunk *enable, const Chunk *address,
                 Chunk *data) {
  if (!enable[0]) return true;
  const uint64_t word = number<AddressBits>(address);
  if (word >= buffer.size / Bytes) return false;
  std::memcpy(data, buffer.bytes + word * Bytes, Bytes);
  return true;
}

template <size_t Bytes, size_t AddressBits, class Chunk>
inline bool write(const driver::Buffer &buffer, const Chunk *enable, const Chunk *address,
                  const Chunk *data, const Chunk *mask) {
  constexpr size_t chunk = 8 * sizeof(Chunk);
  if (!enable[0]) return true;
  const uint64_t word = number<AddressBits>(address);
  if (word >= buffer.size / Bytes) return false;
  uint8_t *to = buffer.bytes + word * Bytes;
  const uint8_t *from = reinterpret_cast<const uint8_t *>(data);
  bool all = true;
  for (size_t i = 0; i < Bytes; i += chunk)
    all &= mask[i / chunk] ==
           (Bytes - i >= chunk ? ~Chunk(0) : (Chunk(1) << (Bytes - i) % chunk) - 1);
  if (all) {
    std::memcpy(to, from, Bytes);
  } else {
    for (size_t i = 0; i < Bytes; i++)
      if (mask[i / chunk] >> i % chunk & 1) to[i] = from[i];
  }
  return true;
}

} // namespace storage
