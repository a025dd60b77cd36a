// Evaluates a netlist of LUTs, flip-flops and memories with one clock: only what changes, in the
// order of the data flow. Reads the netlist as tables, so that nothing is compiled for it.
//
// Signals are numbered; 0 is constantly low, 1 constantly high. LUTs come in an order in which
// each one follows those that it depends on.

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

struct Lut {
  uint32_t inputs[4];
  uint32_t output;
  uint32_t table; // bit i: the output for inputs i, the first input least significant
};

// At an edge: `value` if `clear` is high, else `d` if `enable` is.
struct FlipFlop {
  uint32_t d, enable, clear, q;
  uint32_t value, first;
};

enum Kind { READ, WRITE, WRITE_TABLE };

// A port of a memory of single bits: data bit j is at its offset plus the weights of the address
// bits that are high. A read port gives what was there before the edge. WRITE_TABLE: the memory is
// the table of a LUT, whose number stands for the memory's.
struct Port {
  uint32_t memory, kind, enable;
  uint32_t address, address_bits; // range of `wires`: a signal and its weight each
  uint32_t data, data_bits;       // a signal and its offset each; of a write also its mask
};

struct Wire {
  uint32_t signal, place, mask;
};

struct Netlist {
  uint32_t signals, luts, flip_flops, ports, wires, memories;
  const Lut *lut;
  const FlipFlop *flip_flop;
  const Port *port;
  const Wire *wire;
  const uint8_t *contents; // one byte a bit, all memories after each other
  uint64_t content_bits;
  const uint64_t *bases; // where each memory begins in `contents`
};

// Times that LUTs in a loop are looked at before they are taken to oscillate.
const int ROUNDS = 64;

// A set of small numbers that is walked in their order, and may grow ahead while it is.
class Set {
public:
  void resize(size_t count) {
    words.assign(count / 64 + 1, 0);
    groups.assign(words.size() / 64 + 1, 0);
  }
  void add(uint32_t item) {
    words[item / 64] |= uint64_t(1) << item % 64;
    groups[item / 4096] |= uint64_t(1) << item / 64 % 64;
  }
  template <class Visit> void drain(Visit visit) {
    for (size_t group = 0; group < groups.size(); group++) {
      while (groups[group]) {
        size_t word = group * 64 + size_t(__builtin_ctzll(groups[group]));
        while (words[word]) {
          int bit = __builtin_ctzll(words[word]);
          words[word] &= words[word] - 1;
          visit(uint32_t(word * 64 + size_t(bit)));
        }
        groups[group] &= groups[group] - 1;
      }
    }
  }

private:
  std::vector<uint64_t> words, groups;
};

class Gates {
public:
  explicit Gates(const Netlist &net)
      : luts(net.lut, net.lut + net.luts), flip_flops(net.flip_flop, net.flip_flop + net.flip_flops),
        ports(net.port, net.port + net.ports), wires(net.wire, net.wire + net.wires),
        bits(net.contents, net.contents + net.content_bits),
        bases(net.bases, net.bases + net.memories), level(net.signals, 0), pins(net.signals, 0) {
    std::vector<std::vector<uint32_t>> users(net.signals);
    auto use = [&](uint32_t signal, uint32_t user) {
      if (users[signal].empty() || users[signal].back() != user) users[signal].push_back(user);
    };
    for (uint32_t i = 0; i < luts.size(); i++)
      for (uint32_t input : luts[i].inputs) use(input, i);
    first_register = uint32_t(luts.size());
    for (uint32_t i = 0; i < flip_flops.size(); i++)
      for (uint32_t input : {flip_flops[i].d, flip_flops[i].enable, flip_flops[i].clear})
        use(input, first_register + i);
    first_port = first_register + uint32_t(flip_flops.size());
    for (uint32_t i = 0; i < ports.size(); i++) {
      const Port &port = ports[i];
      use(port.enable, first_port + i);
      for (uint32_t j = 0; j < port.address_bits; j++)
        use(wires[port.address + j].signal, first_port + i);
      for (uint32_t j = 0; port.kind != READ && j < port.data_bits; j++) {
        use(wires[port.data + j].signal, first_port + i);
        use(wires[port.data + j].mask, first_port + i);
      }
    }
    begin.push_back(0);
    for (const auto &list : users) {
      fanout.insert(fanout.end(), list.begin(), list.end());
      begin.push_back(uint32_t(fanout.size()));
    }
    dirty_luts.resize(luts.size());
    dirty_registers.resize(flip_flops.size());
    dirty_ports.resize(ports.size());
    for (uint32_t i = 0; i < luts.size(); i++) dirty_luts.add(i);
    for (uint32_t i = 0; i < flip_flops.size(); i++) dirty_registers.add(i);
    for (uint32_t i = 0; i < ports.size(); i++) dirty_ports.add(i);
    level[1] = 1;
    for (const FlipFlop &item : flip_flops) level[item.q] = uint8_t(item.first);
    pins = level;
  }

  // Carries levels through the LUTs, beginning with the inputs that were changed at the pins.
  void settle() {
    for (uint32_t input : inputs)
      if (pins[input] != level[input]) set(input, pins[input]);
    // LUTs in a loop are looked up until they rest.
    for (int round = 0; round == 0 || !again.empty(); round++) {
      for (uint32_t index : again) dirty_luts.add(index);
      again.clear();
      bool changed = false;
      dirty_luts.drain([&](uint32_t index) {
        const Lut &lut = luts[index];
        uint8_t value = uint8_t(lut.table >> row_of(lut) & 1);
        if (!chosen.empty()) looked_up.add(index);
        here = int64_t(index);
        if (value == level[lut.output]) return;
        changed = true;
        set(lut.output, value);
      });
      here = -1;
      if (round < ROUNDS || !changed) continue;
      restless = true;
      return again.clear();
    }
  }

  // From now on `note` notes which rows of every LUT its inputs choose.
  void watch_rows() {
    chosen.assign(luts.size(), 0);
    looked_up.resize(luts.size());
    for (uint32_t i = 0; i < luts.size(); i++) looked_up.add(i);
  }

  // After settle(), because LUTs whose inputs have yet to settle choose nothing.
  void note() {
    looked_up.drain([&](uint32_t index) { chosen[index] |= uint16_t(1u << row_of(luts[index])); });
  }

  // After settle(). Everything reads the levels before the edge, and only then changes its own.
  void edge() {
    changes.clear();
    dirty_registers.drain([&](uint32_t index) {
      const FlipFlop &item = flip_flops[index];
      uint8_t next = level[item.enable] ? level[item.d] : level[item.q];
      if (level[item.clear]) next = uint8_t(item.value);
      if (next != level[item.q]) changes.push_back({item.q, next});
    });
    stores.clear();
    dirty_ports.drain([&](uint32_t index) { access(ports[index]); });
    for (const Store &store : stores) {
      const Port &port = *store.port;
      if (port.kind == WRITE) {
        bits[store.place] = store.value;
        // A port may read the same place again at the next edge.
        for (uint32_t i = 0; i < ports.size(); i++)
          if (ports[i].kind == READ && ports[i].memory == port.memory) dirty_ports.add(i);
      } else {
        uint32_t &table = luts[port.memory].table;
        table = (table & ~(1u << store.place)) | uint32_t(store.value) << store.place;
        dirty_luts.add(port.memory);
      }
    }
    for (const Change &change : changes) set(change.signal, change.value);
    cycles++;
  }

  void drive(uint32_t signal) { inputs.push_back(signal); }
  uint8_t *address(uint32_t signal) { return &pins[signal]; }
  uint8_t value(uint32_t signal) const { return level[signal]; }

  uint64_t cycles = 0;
  bool restless = false; // a loop of LUTs has not come to rest
  std::vector<uint16_t> chosen; // of each LUT the rows that were chosen, once they are watched

private:
  struct Change {
    uint32_t signal;
    uint8_t value;
  };
  struct Store {
    const Port *port;
    uint64_t place;
    uint8_t value;
  };

  uint32_t row_of(const Lut &lut) const {
    uint32_t row = 0;
    for (int i = 0; i < 4; i++) row |= uint32_t(level[lut.inputs[i]]) << i;
    return row;
  }

  // Notes what a port reads or writes at this edge, where that changes anything.
  void access(const Port &port) {
    if (!level[port.enable]) return;
    uint64_t word = port.kind == WRITE_TABLE ? 0 : bases[port.memory];
    for (uint32_t i = 0; i < port.address_bits; i++) {
      const Wire &wire = wires[port.address + i];
      if (level[wire.signal]) word += wire.place;
    }
    for (uint32_t i = 0; i < port.data_bits; i++) {
      const Wire &wire = wires[port.data + i];
      uint64_t place = word + wire.place;
      uint8_t value = level[wire.signal];
      if (port.kind == READ) {
        if (bits[place] != value) changes.push_back({wire.signal, bits[place]});
      } else if (level[wire.mask]) {
        uint32_t old = port.kind == WRITE ? bits[place] : luts[port.memory].table >> place & 1;
        if (old != value) stores.push_back({&port, place, value});
      }
    }
  }

  void set(uint32_t signal, uint8_t value) {
    level[signal] = pins[signal] = value;
    for (uint32_t i = begin[signal]; i < begin[signal + 1]; i++) {
      uint32_t user = fanout[i];
      if (int64_t(user) <= here)
        again.push_back(user);
      else if (user < first_register)
        dirty_luts.add(user);
      else if (user < first_port)
        dirty_registers.add(user - first_register);
      else
        dirty_ports.add(user - first_port);
    }
  }

  std::vector<Lut> luts;
  std::vector<FlipFlop> flip_flops;
  std::vector<Port> ports;
  std::vector<Wire> wires;
  std::vector<uint8_t> bits;
  std::vector<uint64_t> bases;
  std::vector<uint8_t> level;
  std::vector<uint8_t> pins; // the same for callers, who write inputs here
  std::vector<uint32_t> inputs, begin, fanout;
  std::vector<Change> changes;
  std::vector<Store> stores;
  int64_t here = -1;           // the LUT at which `settle` is
  std::vector<uint32_t> again; // those before it that have to be looked at once more
  uint32_t first_register = 0, first_port = 0;
  Set dirty_luts, dirty_registers, dirty_ports, looked_up;
};

EXPORT void *gates_create(const Netlist *netlist) { return new Gates(*netlist); }
EXPORT void gates_destroy(void *gates) { delete static_cast<Gates *>(gates); }
EXPORT void gates_input(void *gates, uint32_t signal) { static_cast<Gates *>(gates)->drive(signal); }
EXPORT uint8_t *gates_address(void *gates, uint32_t signal) {
  return static_cast<Gates *>(gates)->address(signal);
}
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
    if (!self.chosen.empty()) self.note();
    *came = self.value(uint32_t(signal));
    self.edge();
  }
  return !self.restless;
}
