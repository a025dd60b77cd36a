// Evaluates a netlist and 63 flipped copies of it. `bitlane_boards/pins/gates.cc` evaluates one netlist.
//
// Up to 63 copies of the netlist, each with one row of a LUT flipped, run beside it with the same
// inputs: they have the other bits of every level, and cost next to nothing while they do the same.

#include "netlist.h"

#include <array>

// A LUT with all of its inputs, and the row that is flipped in a copy of the netlist.
struct Flip {
  uint32_t lut, row;
  Lut whole;
};

// Bit i is the level in copy i; copy 0 is the netlist itself, in which no row is flipped.
typedef uint64_t Level;

static Level all(uint32_t level) { return level ? ~Level(0) : 0; }
static Level merged(Level before, Level after, Level copies) {
  return (before & ~copies) | (after & copies);
}

class Gates : public Tables {
public:
  Gates(const Netlist &net, const Flip *flip, uint32_t flips)
      : Tables(net), level(net.signals, 0), shown(net.signals, 0), own(net.luts, 0) {
    for (uint64_t i = 0; i < net.content_bits; i++) bits.push_back(all(net.contents[i]));
    for (uint32_t i = 0; i < flips; i++) {
      luts[flip[i].lut] = flip[i].whole;
      rows_of(flip[i].lut)[flip[i].row] ^= Level(2) << i;
    }
    for (const Port &port : ports)
      if (port.kind == WRITE_TABLE) rows_of(port.memory);
    connect(net.signals);
    level[1] = all(1);
    for (const FlipFlop &item : flip_flops) level[item.q] = all(item.first);
    for (uint32_t i = 0; i < net.signals; i++) shown[i] = uint8_t(level[i] & 1);
  }

  // Carries levels through to where they are used, and takes over inputs that were changed.
  void settle() {
    for (uint32_t input : inputs)
      if (shown[input] != (level[input] & 1)) set(input, all(shown[input]));
    // A flipped row may close a loop of LUTs, which is walked until it rests.
    for (int round = 0; round == 0 || !again.empty(); round++) {
      for (uint32_t index : again) dirty_luts.add(index);
      again.clear();
      Level changed = 0;
      dirty_luts.drain([&](uint32_t index) {
        const Lut &lut = luts[index];
        Level value = look_up(lut, own[index] ? rows[own[index] - 1].data() : nullptr);
        if (!chosen.empty()) looked_up.add(index);
        changed |= value ^ level[lut.output];
        here = int64_t(index);
        if (value != level[lut.output]) set(lut.output, value);
      });
      here = -1;
      if (round < ROUNDS) continue;
      part(changed);
      restless = changed & 1;
      if (restless) return again.clear();
    }
  }

  // Ends the copies in which `signal` or a watched signal has another level: they become like the
  // netlist.
  void compare(uint32_t signal) {
    Level other = level[signal] ^ all(level[signal] & 1);
    for (uint32_t also : watched) other |= level[also] ^ all(level[also] & 1);
    part(other);
  }

  // From now on every LUT that is looked up is in `looked_up`.
  void watch_rows() {
    chosen.assign(luts.size(), 0);
    looked_up.resize(luts.size());
    for (uint32_t i = 0; i < luts.size(); i++) looked_up.add(i);
  }

  std::vector<uint16_t> chosen; // of each LUT the rows that were chosen, once they are watched

  // After settle(): what is on the way to rest chooses nothing.
  void note() {
    looked_up.drain([&](uint32_t index) {
      uint32_t row = 0;
      for (int i = 0; i < 4; i++) row |= uint32_t(level[luts[index].inputs[i]] & 1) << i;
      chosen[index] |= uint16_t(1u << row);
    });
  }

  // After settle(). Everything reads the levels before the edge, and only then changes its own.
  void edge() {
    changes.clear();
    dirty_registers.drain([&](uint32_t index) {
      const FlipFlop &item = flip_flops[index];
      Level now = level[item.q];
      Level next = merged(now, level[item.d], level[item.enable]);
      next = merged(next, all(item.value), level[item.clear]);
      if (next != now) changes.push_back({item.q, next, all(1)});
    });
    stores.clear();
    written.clear();
    reads.clear();
    dirty_ports.drain([&](uint32_t index) {
      const Port &port = ports[index];
      each_address(port, [&](uint64_t word, Level copies) {
        for (uint32_t i = 0; i < port.data_bits; i++) {
          const Wire &wire = wires[port.data + i];
          uint64_t place = word + wire.place;
          if (port.kind == READ) {
            Level next = merged(level[wire.signal], bits[place], copies);
            if (next != level[wire.signal]) changes.push_back({wire.signal, bits[place], copies});
          } else {
            Level &cell = port.kind == WRITE ? bits[place] : rows_of(port.memory)[place];
            Level next = merged(cell, level[wire.signal], copies & level[wire.mask]);
            if (next == cell) continue;
            stores.push_back({&cell, level[wire.signal], copies & level[wire.mask]});
            (port.kind == WRITE ? reads : written).push_back(port.memory);
          }
        }
      });
    });
    for (const Store &store : stores) *store.cell = merged(*store.cell, store.value, store.copies);
    for (uint32_t lut : written) dirty_luts.add(lut);
    // What was written may be what a port reads again at the next edge.
    for (uint32_t memory : reads)
      for (uint32_t i = 0; i < ports.size(); i++)
        if (ports[i].kind == READ && ports[i].memory == memory) dirty_ports.add(i);
    for (const Change &change : changes)
      set(change.signal, merged(level[change.signal], change.value, change.copies));
    cycles++;
  }

  void watch(uint32_t signal) { watched.push_back(signal); }
  uint8_t *address(uint32_t signal) { return &shown[signal]; }
  uint8_t value(uint32_t signal) const { return uint8_t(level[signal] & 1); }

  Level apart = 0; // copies that `compare` has ended

private:
  struct Change {
    uint32_t signal;
    Level value, copies;
  };
  struct Store {
    Level *cell;
    Level value, copies;
  };
  typedef std::array<Level, 16> Rows;

  Set looked_up;

  // The rows of a LUT that are not the same in all copies, or are written.
  Rows &rows_of(uint32_t lut) {
    if (!own[lut]) {
      rows.emplace_back();
      for (int row = 0; row < 16; row++) rows.back()[row] = all(luts[lut].table >> row & 1);
      own[lut] = uint32_t(rows.size());
    }
    return rows[own[lut] - 1];
  }

  Level look_up(const Lut &lut, const Level *rows) const {
    uint32_t row = 0;
    bool same = !rows;
    for (int i = 0; i < 4; i++) {
      Level input = level[lut.inputs[i]];
      row |= uint32_t(input & 1) << i;
      same = same && input == all(input & 1);
    }
    if (same) return all(lut.table >> row & 1);
    Level left[16];
    for (int i = 0; i < 16; i++) left[i] = rows ? rows[i] : all(lut.table >> i & 1);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 8 >> i; j++)
        left[j] = merged(left[2 * j], left[2 * j + 1], level[lut.inputs[i]]);
    return left[0];
  }

  // Every address at an enabled port, and in which copies it is that.
  template <class Visit> void each_address(const Port &port, Visit visit) {
    Level left = level[port.enable];
    while (left) {
      Level same = left;
      uint64_t word = port.kind == WRITE_TABLE ? 0 : bases[port.memory];
      int copy = __builtin_ctzll(left);
      for (uint32_t i = 0; i < port.address_bits; i++) {
        const Wire &wire = wires[port.address + i];
        bool high = level[wire.signal] >> copy & 1;
        if (high) word += wire.place;
        same &= high ? level[wire.signal] : ~level[wire.signal];
      }
      visit(word, same);
      left &= ~same;
    }
  }

  void part(Level copies) {
    copies &= ~apart & ~Level(1);
    if (!copies) return;
    apart |= copies;
    for (Level &item : level) item = merged(item, all(item & 1), copies);
    for (Level &item : bits) item = merged(item, all(item & 1), copies);
    for (Rows &table : rows)
      for (Level &item : table) item = merged(item, all(item & 1), copies);
  }

  void set(uint32_t signal, Level value) {
    level[signal] = value;
    shown[signal] = uint8_t(value & 1);
    wake(signal);
  }

  std::vector<Level> bits;
  std::vector<Level> level;
  std::vector<uint8_t> shown; // of copy 0: where others read, and write inputs
  std::vector<uint32_t> own;  // of each LUT: where its table is in `rows`, from 1, if it has one
  std::vector<Rows> rows;
  std::vector<uint32_t> watched;
  std::vector<Change> changes;
  std::vector<Store> stores;
  std::vector<uint32_t> reads, written;
};

EXPORT void *gates_create(const Netlist *netlist) { return new Gates(*netlist, nullptr, 0); }
EXPORT void *gates_create_flipped(const Netlist *netlist, const Flip *flip, uint32_t flips) {
  return new Gates(*netlist, flip, flips);
}
EXPORT void gates_destroy(void *gates) { delete static_cast<Gates *>(gates); }
EXPORT void gates_input(void *gates, uint32_t signal) { static_cast<Gates *>(gates)->drive(signal); }
EXPORT uint8_t *gates_address(void *gates, uint32_t signal) {
  return static_cast<Gates *>(gates)->address(signal);
}
EXPORT uint64_t gates_apart(void *gates) { return static_cast<Gates *>(gates)->apart; }
EXPORT void gates_watch(void *gates, uint32_t signal) { static_cast<Gates *>(gates)->watch(signal); }
EXPORT void gates_watch_rows(void *gates) { static_cast<Gates *>(gates)->watch_rows(); }
EXPORT const uint16_t *gates_chosen(void *gates) {
  return static_cast<Gates *>(gates)->chosen.data();
}
EXPORT int gates_get(void *gates, uint32_t signal) {
  static_cast<Gates *>(gates)->settle();
  return static_cast<Gates *>(gates)->value(signal);
}
EXPORT int gates_run_until(void *gates, size_t signal, uint64_t limit, int *came) {
  Gates &self = *static_cast<Gates *>(gates);
  *came = 0;
  while (limit-- && !*came && !self.restless) {
    self.settle();
    self.compare(uint32_t(signal));
    if (!self.chosen.empty()) self.note();
    *came = self.value(uint32_t(signal));
    self.edge();
  }
  return !self.restless;
}
