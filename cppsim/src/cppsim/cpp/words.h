// What written programs call: divisions, and operations wider than a word, whose values are arrays
// of 64-bit words, the least significant first, with zeros above their bits.

// The system's larger headers take as long to read as most models to compile.
#include <stddef.h>
#include <stdint.h>

// Divisions round down; by 0 they give 0.
namespace word {

inline uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

inline uint64_t divide(uint64_t a, uint64_t b) { return b ? a / b : 0; }

inline uint64_t modulo(uint64_t a, uint64_t b) { return b ? a % b : 0; }

inline uint64_t divide_signed(int64_t a, int64_t b) {
  if (!b) return 0;
  if (b == -1) return -uint64_t(a); // the least number over -1 is not representable
  const int64_t quotient = a / b;
  return uint64_t(quotient - (a % b && (a < 0) != (b < 0)));
}

inline uint64_t modulo_signed(int64_t a, int64_t b) {
  if (!b || b == -1) return 0;
  const int64_t rest = a % b;
  return uint64_t(rest && (rest < 0) != (b < 0) ? rest + b : rest);
}

} // namespace word

namespace wide {

constexpr size_t words(size_t bits) { return (bits + 63) / 64; }

template <size_t Bits> inline void clear(uint64_t *result) {
  for (size_t i = 0; i < words(Bits); i++) result[i] = 0;
}

template <size_t Bits> inline void trim(uint64_t *result) {
  if (Bits % 64) result[words(Bits) - 1] &= ~uint64_t(0) >> (64 - Bits % 64) % 64;
}

template <size_t Bits> inline void add(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  unsigned __int128 sum = 0;
  for (size_t i = 0; i < words(Bits); i++) {
    sum += a[i];
    sum += b[i];
    result[i] = uint64_t(sum);
    sum >>= 64;
  }
  trim<Bits>(result);
}

template <size_t Bits>
inline void subtract(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t borrow = 0;
  for (size_t i = 0; i < words(Bits); i++) {
    unsigned __int128 difference = (unsigned __int128)a[i] - b[i] - borrow;
    result[i] = uint64_t(difference);
    borrow = uint64_t(difference >> 64) & 1;
  }
  trim<Bits>(result);
}

template <size_t Bits> inline void negate(uint64_t *result, const uint64_t *a) {
  const uint64_t zero[words(Bits)] = {};
  subtract<Bits>(result, zero, a);
}

template <size_t Bits>
inline void multiply(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  clear<Bits>(result);
  for (size_t i = 0; i < words(Bits); i++) {
    unsigned __int128 carry = 0;
    for (size_t j = 0; i + j < words(Bits); j++) {
      carry += (unsigned __int128)a[i] * b[j] + result[i + j];
      result[i + j] = uint64_t(carry);
      carry >>= 64;
    }
  }
  trim<Bits>(result);
}

template <size_t Bits> inline uint64_t less(const uint64_t *a, const uint64_t *b) {
  for (size_t i = words(Bits); i--;)
    if (a[i] != b[i]) return a[i] < b[i];
  return 0;
}

template <size_t Bits> inline uint64_t less_equal(const uint64_t *a, const uint64_t *b) {
  return !less<Bits>(b, a);
}

template <size_t Bits> inline uint64_t less_signed(const uint64_t *a, const uint64_t *b) {
  constexpr size_t top = words(Bits) - 1, bit = (Bits - 1) % 64;
  const uint64_t sign_a = a[top] >> bit & 1, sign_b = b[top] >> bit & 1;
  return sign_a != sign_b ? sign_a : less<Bits>(a, b);
}

template <size_t Bits> inline uint64_t less_equal_signed(const uint64_t *a, const uint64_t *b) {
  return !less_signed<Bits>(b, a);
}

// Amounts of more than a word are larger than any value is wide, unless their upper words are 0.
template <size_t Bits> inline size_t amount(const uint64_t *shift) {
  for (size_t i = 1; i < words(Bits); i++)
    if (shift[i]) return SIZE_MAX;
  return shift[0];
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void left(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  const size_t by = word::least(amount<ShiftBits>(shift), Bits), skip = by / 64, in = by % 64;
  for (size_t i = words(Bits); i--;) {
    const uint64_t high = i >= skip ? a[i - skip] << in : 0;
    result[i] = high | (in && i > skip ? a[i - skip - 1] >> (64 - in) : 0);
  }
  trim<Bits>(result);
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void right(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  const size_t by = word::least(amount<ShiftBits>(shift), Bits), skip = by / 64, in = by % 64;
  for (size_t i = 0; i < words(Bits); i++) {
    const uint64_t low = i + skip < words(Bits) ? a[i + skip] >> in : 0;
    result[i] = low | (in && i + skip + 1 < words(Bits) ? a[i + skip + 1] << (64 - in) : 0);
  }
}

template <size_t Bits, size_t ShiftBits = Bits>
inline void right_signed(uint64_t *result, const uint64_t *a, const uint64_t *shift) {
  constexpr size_t top = words(Bits) - 1;
  right<Bits, ShiftBits>(result, a, shift);
  if (!(a[top] >> (Bits - 1) % 64 & 1)) return;
  // Ones from where the sign bit has gone to the top.
  const size_t by = word::least(amount<ShiftBits>(shift), Bits);
  for (size_t bit = Bits - by; bit < Bits; bit++) result[bit / 64] |= uint64_t(1) << bit % 64;
}

// Bit by bit: rare in circuits, and seldom wide.
template <size_t Bits>
inline void split(uint64_t *quotient, uint64_t *rest, const uint64_t *a, const uint64_t *b) {
  constexpr size_t count = words(Bits);
  uint64_t more[count];
  for (size_t i = 0; i < count; i++) quotient[i] = rest[i] = 0;
  const uint64_t none[count] = {};
  if (less_equal<Bits>(b, none)) return;
  for (size_t bit = Bits; bit--;) {
    const uint64_t top = rest[count - 1] >> 63;
    for (size_t i = count; i-- > 1;) rest[i] = rest[i] << 1 | rest[i - 1] >> 63;
    rest[0] = rest[0] << 1 | (a[bit / 64] >> bit % 64 & 1);
    // The rest may have one bit more than the divisor.
    if (top || !less<count * 64>(rest, b)) {
      subtract<count * 64>(more, rest, b);
      for (size_t i = 0; i < count; i++) rest[i] = more[i];
      quotient[bit / 64] |= uint64_t(1) << bit % 64;
    }
  }
}

template <size_t Bits> inline void divide(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t rest[words(Bits)];
  split<Bits>(result, rest, a, b);
}

template <size_t Bits> inline void modulo(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t quotient[words(Bits)];
  split<Bits>(quotient, result, a, b);
}

template <size_t Bits> inline bool negative(const uint64_t *a) {
  return a[words(Bits) - 1] >> (Bits - 1) % 64 & 1;
}

// Divides absolute values, then corrects the result to rounding down.
template <size_t Bits>
inline void split_signed(uint64_t *quotient, uint64_t *rest, const uint64_t *a, const uint64_t *b) {
  constexpr size_t count = words(Bits);
  const uint64_t none[count] = {};
  uint64_t positive_a[count], positive_b[count], other[count];
  const bool minus_a = negative<Bits>(a), minus_b = negative<Bits>(b);
  subtract<Bits>(positive_a, minus_a ? none : a, minus_a ? a : none);
  subtract<Bits>(positive_b, minus_b ? none : b, minus_b ? b : none);
  split<Bits>(quotient, rest, positive_a, positive_b);
  const bool some = !less_equal<Bits>(rest, none);
  if (minus_a != minus_b) {
    // -q, or -q - 1, which is ~q, where there is a rest.
    for (size_t i = 0; i < count; i++) other[i] = ~quotient[i];
    trim<Bits>(other);
    if (some)
      for (size_t i = 0; i < count; i++) quotient[i] = other[i];
    else
      negate<Bits>(quotient, quotient);
    if (some) subtract<Bits>(rest, positive_b, rest);
  }
  if (minus_b) negate<Bits>(rest, rest);
}

template <size_t Bits>
inline void divide_signed(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t rest[words(Bits)];
  const uint64_t none[words(Bits)] = {};
  if (less_equal<Bits>(b, none)) clear<Bits>(result);
  else split_signed<Bits>(result, rest, a, b);
}

template <size_t Bits>
inline void modulo_signed(uint64_t *result, const uint64_t *a, const uint64_t *b) {
  uint64_t quotient[words(Bits)];
  const uint64_t none[words(Bits)] = {};
  if (less_equal<Bits>(b, none)) clear<Bits>(result);
  else split_signed<Bits>(quotient, result, a, b);
}

} // namespace wide
