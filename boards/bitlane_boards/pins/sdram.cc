// An SDRAM chip as in its data sheet: its contents, the data that it sends, and the rules that
// commands broke. Does not depend on its controller. Compiled once for all chips.
//
// Times count the chip's clock edges. A violation is reported by the name of its rule; the chip
// then executes the command as if it were legal.

#include <cstddef>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Times in nanoseconds.
struct Part {
  uint32_t width, masks, row_bits, column_bits, bank_bits, first_refreshes; // masks: 0 or 1
  double period; // of the clock
  double rcd, rp, ras, longest_ras, rc, rfc, rrd, wr, mrd, retention, pause;
  double clocks[4]; // the shortest period by CAS latency; 0: not supported
};

// What is at the pins at an edge.
struct Levels {
  uint32_t command; // RAS, CAS, WE from the lowest bit on; 1 is active
  uint32_t bank, address, mask, o, oe;
};

enum Command { NONE, ACTIVATE, READ, REFRESH, STOP, PRECHARGE, WRITE, SET_MODE };
const char *const NAMES[] = {"nothing", "ACTIVATE", "READ",  "REFRESH",
                             "STOP",    "PRECHARGE", "WRITE", "SET MODE"};

const int64_t LONG_AGO = -(int64_t(1) << 40);
const uint32_t ALL_BANKS = 1 << 10;
const int AHEAD = 64; // edges of the pipelines of words to send and to store

class Chip {
public:
  Chip(const Part &part, uint32_t *words)
      : part(part), words(words), banks(size_t(1) << part.bank_bits),
        restored(banks.size() << part.row_bits, LONG_AGO) {}

  // What the data lines have at the next edge, unless the controller drives them.
  uint32_t level() const { return level_of_lines; }

  void edge(const Levels &pins) {
    transfer(pins);
    const int command = int(pins.command & 7);
    if (command != NONE) {
      time_rules(command);
      switch (command) {
      case ACTIVATE: activate(pins); break;
      case READ:
      case WRITE: access(pins, command); break;
      case REFRESH: refresh(); break;
      case PRECHARGE: precharge(pins); break;
      case SET_MODE: set_mode(pins); break;
      case STOP: broken("burst", "STOP: bursts are not to be cut short"); break;
      }
    }
    masks[1] = masks[0];
    masks[0] = pins.mask;
    drove = drives;
    controller_drove = pins.oe != 0;
    now++;
    const Word &next = to_send[now % AHEAD];
    drives = next.due == now;
    if (drives) {
      // A mask lets go of its byte two edges later.
      uint32_t seen = 0;
      for (uint32_t byte = 0; byte < part.width / 8; byte++)
        if (!(masks[1] >> byte & 1)) seen |= 0xFFu << 8 * byte;
      level_of_lines = (words[next.place] & seen) | (~level_of_lines & ~seen & ones());
      reads++;
    } else if (drove) {
      level_of_lines = ~level_of_lines & ones();
    }
  }

  Part part;
  int64_t now = 0;
  uint64_t faults = 0, lost_rows = 0, reads = 0, writes = 0, refreshes = 0, activates = 0;
  char message[256] = "";

private:
  struct Bank {
    bool open = false;
    uint32_t row = 0;
    int64_t activated = LONG_AGO, precharged = LONG_AGO, written = LONG_AGO, busy_to = LONG_AGO;
  };
  struct Word {
    int64_t due = LONG_AGO;
    size_t place = 0;
  };

  uint32_t ones() const { return part.width < 32 ? (1u << part.width) - 1 : ~0u; }

  void broken(const char *rule, const char *format, ...) __attribute__((format(printf, 3, 4))) {
    if (faults++) return;
    int used = snprintf(message, sizeof message, "%s: at %.1f ns: ", rule, double(now) * part.period);
    va_list values;
    va_start(values, format);
    vsnprintf(message + used, sizeof message - size_t(used), format, values);
    va_end(values);
  }

  void expect(const char *rule, int64_t since, double least, int command, const char *before) {
    double passed = double(now - since) * part.period;
    if (passed + 1e-6 < least)
      broken(rule, "%s %.1f ns after %s; expected %.1f ns or more", NAMES[command], passed, before,
             least);
  }

  void time_rules(int command) {
    if (now * part.period + 1e-6 < part.pause)
      broken("pause", "%s before %.0f ns have passed", NAMES[command], part.pause);
    if (now < burst_to && (command == READ || command == WRITE))
      broken("burst", "%s cuts a burst short", NAMES[command]);
    expect("tRFC", refreshed, part.rfc, command, "REFRESH");
    expect("tMRD", mode_set, part.mrd, command, "SET MODE");
    if ((command == REFRESH || command == SET_MODE))
      for (const Bank &bank : banks) {
        if (bank.open) broken("open bank", "%s while a bank is open", NAMES[command]);
        expect("tRP", bank.precharged, part.rp, command, "PRECHARGE");
      }
  }

  size_t row_of(size_t bank, uint32_t row) const { return (bank << part.row_bits) + row; }

  // A row is read and written back: what it holds is good for a while more, if it still was.
  void restore(size_t bank, uint32_t row) {
    int64_t &last = restored[row_of(bank, row)];
    if (last != LONG_AGO && double(now - last) * part.period > part.retention) {
      lost_rows++;
      broken("tREF", "bank %u, row %u was restored %.0f ns ago; expected %.0f ns at most",
             unsigned(bank), row, double(now - last) * part.period, part.retention);
      uint32_t *word = words + (row_of(bank, row) << part.column_bits);
      for (size_t i = 0; i < size_t(1) << part.column_bits; i++) word[i] ^= ones();
    }
    if (last != LONG_AGO) last = now;
  }

  void activate(const Levels &pins) {
    Bank &bank = banks[pins.bank];
    if (!cas || first_refreshes < part.first_refreshes)
      broken("start", "ACTIVATE before SET MODE and %u REFRESHes", part.first_refreshes);
    if (bank.open) broken("open bank", "ACTIVATE of bank %u, which is open", pins.bank);
    expect("tRP", bank.precharged, part.rp, ACTIVATE, "PRECHARGE");
    expect("tRC", bank.activated, part.rc, ACTIVATE, "ACTIVATE of the bank");
    expect("tRRD", activated, part.rrd, ACTIVATE, "ACTIVATE of another bank");
    bank.open = true;
    bank.row = pins.address & ((1u << part.row_bits) - 1);
    bank.activated = activated = now;
    activates++;
    restore(pins.bank, bank.row);
  }

  void access(const Levels &pins, int command) {
    Bank &bank = banks[pins.bank];
    if (!bank.open) broken("closed bank", "%s in bank %u, which is closed", NAMES[command], pins.bank);
    expect("tRCD", bank.activated, part.rcd, command, "ACTIVATE");
    if (pins.address & ALL_BANKS) broken("auto precharge", "%s with it: not simulated", NAMES[command]);
    const uint32_t column = pins.address & ((1u << part.column_bits) - 1);
    const size_t row = row_of(pins.bank, bank.row);
    // A burst goes round in the block of its length.
    for (uint32_t i = 0; i < burst; i++) {
      const uint32_t at = (column & ~(burst - 1)) | ((column + i) & (burst - 1));
      const Word word{now + (command == READ ? int64_t(cas) : 0) + i,
                      (row << part.column_bits) + at};
      (command == READ ? to_send : to_store)[word.due % AHEAD] = word;
    }
    bank.busy_to = burst_to = now + burst;
    if (command == WRITE) {
      bank.written = now + burst - 1;
      restored[row] = now;
      store(pins);
    }
  }

  void store(const Levels &pins) {
    const Word &word = to_store[now % AHEAD];
    if (word.due != now) return;
    if (!pins.oe) broken("data lines", "nobody drives a word that is written");
    for (uint32_t byte = 0; byte < part.width / 8; byte++) {
      const uint32_t bits = 0xFFu << 8 * byte;
      if (!(pins.mask >> byte & 1))
        words[word.place] = (words[word.place] & ~bits) | (pins.o & bits);
    }
    writes++;
  }

  void transfer(const Levels &pins) {
    // Who stops driving does so up to an edge after the last word, who starts up to one before.
    if ((pins.oe && (drives || drove)) || (drives && controller_drove))
      broken("data lines", "both sides drive them");
    if (pins.oe) level_of_lines = pins.o;
    store(pins);
  }

  void close(size_t index) {
    Bank &bank = banks[index];
    if (bank.open) {
      expect("tRAS", bank.activated, part.ras, PRECHARGE, "ACTIVATE");
      expect("tWR", bank.written, part.wr, PRECHARGE, "the last word written");
      if (double(now - bank.activated) * part.period > part.longest_ras)
        broken("tRAS", "bank %u was open for %.0f ns", unsigned(index),
               double(now - bank.activated) * part.period);
      if (now < bank.busy_to) broken("burst", "PRECHARGE cuts a burst short");
      restore(index, bank.row);
      bank.precharged = now;
    }
    bank.open = false;
  }

  void precharge(const Levels &pins) {
    if (!(pins.address & ALL_BANKS)) return close(pins.bank);
    for (size_t i = 0; i < banks.size(); i++) {
      // The state of the banks is undefined before initialization.
      if (!cas) banks[i].precharged = now;
      close(i);
    }
    precharged = true;
  }

  void refresh() {
    if (!precharged) broken("start", "REFRESH before PRECHARGE of all banks");
    for (size_t bank = 0; bank < banks.size(); bank++) restore(bank, next_row);
    next_row = (next_row + 1) & ((1u << part.row_bits) - 1);
    refreshed = now;
    refreshes++;
    first_refreshes++;
  }

  void set_mode(const Levels &pins) {
    if (!precharged) broken("start", "SET MODE before PRECHARGE of all banks");
    const uint32_t length = pins.address & 7, latency = pins.address >> 4 & 7;
    if (length > 3 || (pins.address & ~uint32_t(0x77)))
      return broken("mode", "%#x: only sequential bursts of 1 to 8 are simulated", pins.address);
    if (latency > 3 || part.clocks[latency] == 0)
      return broken("CAS latency", "%u: there is none such", latency);
    if (part.period + 1e-6 < part.clocks[latency])
      broken("CAS latency", "%u at %.2f ns; expected %.2f ns or more", latency, part.period,
             part.clocks[latency]);
    burst = 1u << length;
    cas = latency;
    mode_set = now;
  }

  uint32_t *const words; // by bank, row and column; somebody else's
  std::vector<Bank> banks;
  std::vector<int64_t> restored; // of rows that were written, when they were last good
  Word to_send[AHEAD], to_store[AHEAD];
  int64_t refreshed = LONG_AGO, mode_set = LONG_AGO, activated = LONG_AGO, burst_to = LONG_AGO;
  bool precharged = false, drives = false, drove = false, controller_drove = false;
  uint32_t cas = 0, burst = 1, first_refreshes = 0, next_row = 0, level_of_lines = 0;
  uint32_t masks[2] = {};
};

// As in peer.cc: clocks `model` until an edge at which port `port` is high, at most `limit` times.
typedef int (*RunUntil)(void *model, size_t port, uint64_t limit, int *came);

// A model at whose pins a chip is. A pointer to the lowest byte of each port of one bit, which show
// after an edge what they were before it: ras_n, cas_n, we_n, bank, address, mask if the part has
// masks, o, oe; then i.
struct Board {
  Chip *chip;
  void *model;
  RunUntil run_until;
  const uint8_t *const *outputs;
  uint8_t *const *inputs;
};

static uint32_t gather(const uint8_t *const *&bits, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; i++) value |= uint32_t(*bits[i] & 1) << i;
  bits += count;
  return value;
}

EXPORT int sdram_run_until(Board *board, size_t port, uint64_t limit, int *came) {
  Chip &chip = *board->chip;
  const Part &part = chip.part;
  *came = 0;
  while (limit-- && !*came) {
    const uint32_t level = chip.level();
    for (uint32_t i = 0; i < part.width; i++) *board->inputs[i] = level >> i & 1;
    if (!board->run_until(board->model, port, 1, came)) return 0;
    const uint8_t *const *bits = board->outputs;
    Levels pins;
    pins.command = gather(bits, 3) ^ 7; // the levels are low where it is active
    pins.bank = gather(bits, part.bank_bits);
    pins.address = gather(bits, part.row_bits);
    pins.mask = gather(bits, part.masks * part.width / 8);
    pins.o = gather(bits, part.width);
    pins.oe = gather(bits, 1);
    chip.edge(pins);
    if (chip.faults) return 0;
  }
  return 1;
}

EXPORT Chip *sdram_create(const Part *part, uint32_t *words) { return new Chip(*part, words); }
EXPORT void sdram_destroy(Chip *chip) { delete chip; }
EXPORT void sdram_edge(Chip *chip, const Levels *pins) { chip->edge(*pins); }
EXPORT uint32_t sdram_level(Chip *chip) { return chip->level(); }
EXPORT const char *sdram_message(Chip *chip) { return chip->message; }
// Edges; words read and written, ACTIVATEs, REFRESHes; rules broken; rows lost.
EXPORT void sdram_counts(Chip *chip, uint64_t *counts) {
  const uint64_t all[] = {uint64_t(chip->now), chip->reads,     chip->writes,   chip->activates,
                          chip->refreshes,     chip->faults,    chip->lost_rows};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) counts[i] = all[i];
}
