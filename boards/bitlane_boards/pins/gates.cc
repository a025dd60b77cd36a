// Evaluates a netlist: only what changes, in the order of the data flow. Reads the netlist as tables,
// so that nothing is compiled for it.

#include "netlist.h"

class Gates : public Tables {
public:
  explicit Gates(const Netlist &net)
      : Tables(net), bits(net.contents, net.contents + net.content_bits), level(net.signals, 0),
        pins(net.signals, 0) {
    connect(net.signals);
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

  uint8_t *address(uint32_t signal) { return &pins[signal]; }
  uint8_t value(uint32_t signal) const { return level[signal]; }

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
    wake(signal);
  }

  std::vector<uint8_t> bits;
  std::vector<uint8_t> level;
  std::vector<uint8_t> pins; // the same for callers, who write inputs here
  std::vector<Change> changes;
  std::vector<Store> stores;
};

EXPORT void *gates_create(const Netlist *netlist) { return new Gates(*netlist); }
EXPORT void gates_destroy(void *gates) { delete static_cast<Gates *>(gates); }
EXPORT void gates_input(void *gates, uint32_t signal) { static_cast<Gates *>(gates)->drive(signal); }
EXPORT uint8_t *gates_address(void *gates, uint32_t signal) {
  return static_cast<Gates *>(gates)->address(signal);
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
    *came = self.value(uint32_t(signal));
    self.edge();
  }
  return !self.restless;
}
