// The other end of a UART: clocks a model, drives its receive pin and listens to its transmit pin.
// Knows neither how the model is evaluated nor what the bytes mean. Compiled once for all models.
//
// A byte is a low start bit, 8 bits from the least significant one, and a high stop bit. The peer's
// bits have a length of their own, which need not be whole cycles: like any UART's, its clock and
// the model's are two.

#include <cstddef>
#include <cstdint>
#include <deque>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Clocks `model` until an edge at which port `port` is high, at most `limit` times; `came` says
// whether it was. Returns 0 if the model broke a rule.
typedef int (*RunUntil)(void *model, size_t port, uint64_t limit, int *came);

struct Model {
  void *model;
  RunUntil run_until;
  size_t tx;           // number of the pin that sends
  uint8_t *rx;         // lowest byte of the pin that receives
  const uint8_t *busy; // lowest byte of a port that is high while there is work; may be null
};

enum Stop { BROKEN = -1, CYCLES, RECEIVED, QUIET };

struct Received {
  uint64_t cycle;
  uint8_t byte;
};

class Peer {
public:
  Peer(const Model &model, double bit) : bit(bit), model(model) { *model.rx = 1; }

  int run(uint64_t cycles, uint64_t received, uint64_t quiet) {
    for (; cycles; cycles--) {
      if (received && arrived.size() >= received) return RECEIVED;
      if (quiet && silence >= quiet) return QUIET;
      drive();
      int level = 0;
      if (!model.run_until(model.model, model.tx, 1, &level)) return BROKEN;
      listen(level != 0);
      bool working = sending || !unsent.empty() || listening || !level;
      silence = working || (model.busy && *model.busy) ? 0 : silence + 1;
      cycle++;
    }
    if (received && arrived.size() >= received) return RECEIVED;
    return quiet && silence >= quiet ? QUIET : CYCLES;
  }

  void send(const uint8_t *bytes, size_t count) {
    unsent.insert(unsent.end(), bytes, bytes + count);
    if (count) silence = 0;
  }

  std::deque<uint8_t> unsent;
  std::deque<Received> arrived;
  uint64_t cycle = 0;
  uint64_t framing_errors = 0, glitches = 0;
  double bit; // its length in cycles

private:
  // The pin's level for the next edge. Bits begin at whole cycles, on average `bit` apart.
  void drive() {
    if (sending && double(cycle) < next) return;
    if (sending && sent_bits < 10) {
      *model.rx = frame >> sent_bits++ & 1;
      next += bit;
      return;
    }
    // Only a byte that follows at once keeps the row's fractions of a cycle.
    if (!sending) next = double(cycle);
    sending = !unsent.empty();
    if (!sending) return;
    frame = uint32_t(unsent.front()) << 1 | 0x200;
    unsent.pop_front();
    sent_bits = 1;
    *model.rx = 0;
    next += bit;
  }

  void listen(bool level) {
    if (!listening) {
      if (before && !level) {
        listening = true;
        heard_from = cycle;
        heard_bits = 0;
        heard = 0;
      }
      before = level;
      return;
    }
    before = level;
    // The middle of each bit.
    if (double(cycle - heard_from) + 0.5 < (heard_bits + 0.5) * bit) return;
    heard |= uint32_t(level) << heard_bits++;
    if (heard_bits == 1 && level) {
      glitches++;
      listening = false;
    } else if (heard_bits == 10) {
      if (level)
        arrived.push_back({cycle, uint8_t(heard >> 1)});
      else
        framing_errors++;
      listening = false;
    }
  }

  Model model;
  bool sending = false, listening = false, before = true;
  uint32_t frame = 0, heard = 0;
  int sent_bits = 0, heard_bits = 0;
  uint64_t heard_from = 0, silence = 0;
  double next = 0;
};

EXPORT void *peer_create(const Model *model, double bit) { return new Peer(*model, bit); }
EXPORT void peer_destroy(void *peer) { delete static_cast<Peer *>(peer); }
EXPORT void peer_send(void *peer, const uint8_t *bytes, size_t count) {
  static_cast<Peer *>(peer)->send(bytes, count);
}
EXPORT size_t peer_unsent(void *peer) { return static_cast<Peer *>(peer)->unsent.size(); }
EXPORT size_t peer_arrived(void *peer) { return static_cast<Peer *>(peer)->arrived.size(); }
// `cycles` may be null.
EXPORT void peer_take(void *peer, size_t count, uint8_t *bytes, uint64_t *cycles) {
  auto &arrived = static_cast<Peer *>(peer)->arrived;
  for (size_t i = 0; i < count; i++) {
    bytes[i] = arrived.front().byte;
    if (cycles) cycles[i] = arrived.front().cycle;
    arrived.pop_front();
  }
}
EXPORT void peer_set_bit(void *peer, double bit) { static_cast<Peer *>(peer)->bit = bit; }
EXPORT uint64_t peer_cycle(void *peer) { return static_cast<Peer *>(peer)->cycle; }
EXPORT uint64_t peer_framing_errors(void *peer) {
  return static_cast<Peer *>(peer)->framing_errors;
}
EXPORT uint64_t peer_glitches(void *peer) { return static_cast<Peer *>(peer)->glitches; }
EXPORT int peer_run(void *peer, uint64_t cycles, uint64_t received, uint64_t quiet) {
  return static_cast<Peer *>(peer)->run(cycles, received, quiet);
}
