// A gigabit PHY at the RGMII pins of a model with three clocks. Knows neither how the model is
// evaluated nor what the frames mean. Compiled once for all models.
//
// A step of the model is an edge of the clocks whose ports are 1. The PHY drives the clock RX. The
// circuit sends with TX, which has a slightly different frequency.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// As in peer.cc: clocks `model` until an edge at which port `port` is high, at most `limit` times.
typedef int (*RunUntil)(void *model, size_t port, uint64_t limit, int *came);

enum Domain { RX, TX, SYNC, DOMAINS };

const int LINES = 5; // four of data, one of control; at a rising, then at a falling edge

struct Model {
  void *model, *chips; // `chips`: the model with the chips that see the edges of SYNC
  RunUntil run_until, run_chips;
  size_t port; // number of a port of one bit
  uint8_t *edges[DOMAINS];
  uint8_t *in[2 * LINES];        // lowest bytes of RXD rising, falling, RX_CTL rising, falling
  const uint8_t *out[2 * LINES]; // TXD, TX_CTL
  const uint8_t *clock[2];       // TXC
  const uint8_t *busy;
};

enum Stop { BROKEN = -1, TIME, RECEIVED, QUIET };

const uint8_t PREAMBLE = 0x55, START = 0xD5;
const size_t PREAMBLE_BYTES = 7, GAP_BYTES = 12;
const uint8_t STATUS = 0xD; // between frames, until set_status: link is up, 125 MHz, full duplex

// A frame on the line, from the destination address to the FCS.
struct Frame {
  uint64_t time; // of its first byte of preamble
  uint64_t sent_by_circuit;
  std::vector<uint8_t> bytes;
};

class Phy {
public:
  // Times are in femtoseconds.
  Phy(const Model &model, const uint64_t *periods) : model(model) {
    for (int i = 0; i < DOMAINS; i++) {
      this->periods[i] = periods[i];
      next[i] = periods[i] * uint64_t(3 + i) / 7; // no two edges at once at the beginning
    }
    set_status(STATUS);
  }

  // The four bits between frames.
  void set_status(uint8_t bits) {
    status = bits;
    if (place == 0) put(status | status << 4, false);
  }

  // Runs for `time`, until `count` frames of the circuit have arrived that were not taken, or until
  // nothing has moved for `quiet`; 0: never.
  int run(uint64_t time, uint64_t count, uint64_t quiet) {
    const uint64_t end = now + time;
    while (now < end) {
      if (count && arrived >= count) return RECEIVED;
      if (quiet && now - moved >= quiet) return QUIET;
      now = next[RX];
      for (int i = TX; i < DOMAINS; i++)
        if (next[i] < now) now = next[i];
      bool edge[DOMAINS];
      for (int i = 0; i < DOMAINS; i++) {
        *model.edges[i] = edge[i] = next[i] == now;
        if (edge[i]) next[i] += periods[i];
      }
      if (edge[RX]) drive();
      int came = 0;
      const bool legal = edge[SYNC] ? model.run_chips(model.chips, model.port, 1, &came)
                                    : model.run_until(model.model, model.port, 1, &came);
      if (!legal) return BROKEN;
      if (edge[TX]) listen();
      edges[RX] += edge[RX], edges[TX] += edge[TX], edges[SYNC] += edge[SYNC];
      if (*model.busy || !unsent.empty() || hearing) moved = now;
    }
    return TIME;
  }

  void send(const uint8_t *bytes, size_t count) {
    unsent.emplace_back(bytes, bytes + count);
    unsent_bytes += count;
    moved = now;
  }

  std::deque<Frame> frames; // of both directions, in the order of their ends
  uint64_t arrived = 0;     // those among them that the circuit sent
  uint64_t now = 0, unsent_bytes = 0;
  uint64_t edges[DOMAINS] = {};
  uint64_t illegal = 0; // frames of the circuit with errors, a wrong preamble or a short gap

private:
  void put(unsigned byte, bool valid) {
    for (int i = 0; i < 8; i++) *model.in[i] = byte >> i & 1;
    *model.in[8] = *model.in[9] = valid;
  }

  // The byte that the circuit samples at this edge of RX.
  void drive() {
    if (idle) {
      idle--;
      return;
    }
    if (unsent.empty()) return;
    const std::vector<uint8_t> &frame = unsent.front();
    if (place == 0) began = now;
    if (place < PREAMBLE_BYTES)
      put(PREAMBLE, true);
    else if (place == PREAMBLE_BYTES)
      put(START, true);
    else if (place - PREAMBLE_BYTES - 1 < frame.size())
      put(frame[place - PREAMBLE_BYTES - 1], true);
    else {
      put(status | status << 4, false);
      unsent_bytes -= frame.size();
      frames.push_back({began, 0, frame});
      unsent.pop_front();
      place = 0;
      idle = GAP_BYTES - 1;
      return;
    }
    place++;
  }

  void listen() {
    unsigned byte = 0;
    for (int i = 0; i < 8; i++) byte |= unsigned(*model.out[i] & 1) << i;
    const bool valid = *model.out[8] & 1, second = *model.out[9] & 1;
    damaged |= valid != second || !(*model.clock[0] & 1) || (*model.clock[1] & 1);
    if (valid) {
      if (!hearing) {
        heard_from = now;
        damaged |= gap < GAP_BYTES;
      }
      hearing = true;
      heard.push_back(uint8_t(byte));
      return;
    }
    if (!hearing) {
      gap++;
      damaged = false;
      return;
    }
    size_t start = 0;
    while (start < heard.size() && heard[start] == PREAMBLE) start++;
    damaged |= start != PREAMBLE_BYTES || start == heard.size() || heard[start] != START;
    illegal += damaged;
    if (!damaged) {
      heard.erase(heard.begin(), heard.begin() + long(start) + 1);
      frames.push_back({heard_from, 1, heard});
      arrived++;
    }
    heard.clear();
    hearing = damaged = false;
    gap = 1;
  }

  Model model;
  uint8_t status = STATUS;
  uint64_t periods[DOMAINS], next[DOMAINS];
  uint64_t moved = 0;
  std::deque<std::vector<uint8_t>> unsent;
  size_t place = 0; // in the first frame of `unsent`
  size_t idle = 0;  // cycles that are left of the gap before it
  uint64_t began = 0, heard_from = 0;
  std::vector<uint8_t> heard;
  bool hearing = false, damaged = false;
  size_t gap = GAP_BYTES;
};

EXPORT Phy *phy_create(const Model *model, const uint64_t *periods) {
  return new Phy(*model, periods);
}
EXPORT void phy_destroy(Phy *phy) { delete phy; }
EXPORT void phy_send(Phy *phy, const uint8_t *bytes, size_t count) { phy->send(bytes, count); }
EXPORT void phy_set_status(Phy *phy, uint8_t bits) { phy->set_status(bits); }
EXPORT uint64_t phy_unsent(Phy *phy) { return phy->unsent_bytes; }
EXPORT uint64_t phy_now(Phy *phy) { return phy->now; }
EXPORT uint64_t phy_edges(Phy *phy, int domain) { return phy->edges[domain]; }
EXPORT uint64_t phy_illegal(Phy *phy) { return phy->illegal; }
// The size of the oldest frame that is not taken, or 0; its time, and whether the circuit sent it.
EXPORT size_t phy_front(Phy *phy, uint64_t *about) {
  if (phy->frames.empty()) return 0;
  const Frame &frame = phy->frames.front();
  about[0] = frame.time;
  about[1] = frame.sent_by_circuit;
  return frame.bytes.size();
}
EXPORT void phy_take(Phy *phy, uint8_t *bytes) {
  const Frame &frame = phy->frames.front();
  for (size_t i = 0; i < frame.bytes.size(); i++) bytes[i] = frame.bytes[i];
  phy->arrived -= frame.sent_by_circuit;
  phy->frames.pop_front();
}
EXPORT int phy_run(Phy *phy, uint64_t time, uint64_t count, uint64_t quiet) {
  return phy->run(time, count, quiet);
}
