// Connects LiteEth at GMII with a board at RGMII, as a PHY at each end of a cable would.
//
// Reads commands, one a line, and prints what passes:
//   udp ADDRESS PORT HEX, icmp ADDRESS 0 HEX   LiteEth sends this, behind what it has yet to send
//   run NANOSECONDS                            time passes
//   sent HEX, received HEX                     frames of LiteEth, and of the board
//   udp ADDRESS PORT HEX, icmp ADDRESS 0 HEX   LiteEth has received this from there
//   errors N                                   frames with a wrong preamble or FCS, at the end
#include "Vsoc.h"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;

static void show(const std::string &what, Bytes &bytes) {
  std::printf("%s ", what.c_str());
  for (uint8_t byte : bytes) std::printf("%02x", byte);
  std::printf("\n");
  bytes.clear();
}

struct Message {
  uint32_t address;
  uint16_t port;
  Bytes data;
};

static Vsoc soc;

// A pair of LiteEth's streams, of one byte a cycle.
struct Port {
  const char *name;
  CData &sink_valid, &sink_ready, &sink_last, &sink_data;
  SData &sink_length, &sink_port;
  IData &sink_address;
  CData &source_valid, &source_ready, &source_last, &source_error, &source_data;
  SData &source_port;
  IData &source_address;
  std::deque<Message> queue{};
  size_t place = 0;
  Bytes arrived{};

  // Drive the inputs before an edge.
  void drive() {
    source_ready = 1;
    sink_valid = !queue.empty();
    if (queue.empty()) return;
    const Message &message = queue.front();
    sink_data = message.data[place];
    sink_last = place + 1 == message.data.size();
    sink_length = message.data.size();
    sink_address = message.address;
    sink_port = message.port;
  }

  // Take the transfers of the edge that follows.
  void transfer() {
    if (source_valid) {
      arrived.push_back(source_data);
      if (source_last) {
        std::string from = (source_error ? "damaged " : "") + std::string(name);
        from += " " + std::to_string(source_address) + " " + std::to_string(source_port);
        show(from, arrived);
      }
    }
    if (sink_valid && sink_ready && ++place == queue.front().data.size()) {
      queue.pop_front();
      place = 0;
    }
  }
};

#define PORT(name)                                                                           \
  {#name, soc.name##_sink_valid, soc.name##_sink_ready, soc.name##_sink_last,                 \
   soc.name##_sink_data, soc.name##_sink_length, soc.name##_sink_port,                        \
   soc.name##_sink_address, soc.name##_source_valid, soc.name##_source_ready,                 \
   soc.name##_source_last, soc.name##_source_error, soc.name##_source_data,                   \
   soc.name##_source_port, soc.name##_source_address}

static Port udp PORT(udp), icmp PORT(icmp);

static void step_liteeth() {
  if (soc.clocks_sys) {
    soc.clocks_sys = 0;
    return;
  }
  udp.drive();
  icmp.drive();
  soc.eval();
  udp.transfer();
  icmp.transfer();
  soc.clocks_sys = 1;
}

// From LiteEth to the board: RXC changes in the middle of each nibble.
static void step_to_board() {
  static int quarter = 0;
  static Bytes frame;
  switch (quarter++ % 4) {
    case 0:
      soc.clocks_eth_tx = 1;
      soc.rgmii_rxc = 0;
      break;
    case 1:
      soc.rgmii_rxd = soc.gmii_tx_data & 15;
      soc.rgmii_rx_ctl = soc.gmii_tx_en;
      if (soc.gmii_tx_en) frame.push_back(soc.gmii_tx_data);
      else if (!frame.empty()) show("sent", frame);
      break;
    case 2:
      soc.clocks_eth_tx = 0;
      soc.rgmii_rxc = 1;
      break;
    case 3:
      soc.rgmii_rxd = soc.gmii_tx_data >> 4;
  }
}

// From the board to LiteEth: a nibble is taken a quarter of a cycle behind each edge of TXC.
static void step_from_board() {
  static int quarter = 0;
  static uint8_t low, level;
  static bool valid, error;
  static Bytes frame;
  switch (quarter++ % 4) {
    case 0:
      soc.clocks_line = 1;
      break;
    case 2:
      soc.clocks_line = 0;
      break;
    default:
      if (soc.rgmii_txc == level) break;
      level = soc.rgmii_txc;
      if (level) {
        low = soc.rgmii_txd;
        valid = soc.rgmii_tx_ctl;
        soc.clocks_eth_rx = 0;
        break;
      }
      error |= valid != soc.rgmii_tx_ctl;
      soc.gmii_rx_data = low | soc.rgmii_txd << 4;
      soc.gmii_rx_dv = valid;
      if (valid) frame.push_back(soc.gmii_rx_data);
      else if (!frame.empty()) show(error ? "received with an error" : "received", frame);
      if (!valid) error = false;
      soc.eval();
      soc.clocks_eth_rx = 1;
  }
}

static void step_board() { soc.clocks_board = !soc.clocks_board; }

struct Clock {
  uint64_t femtoseconds;
  void (*step)();
  uint64_t next = 0;
};

// The board's 125 MHz are 100 ppm slower than LiteEth's.
static Clock clocks[] = {{3'760'000, step_liteeth}, {6'400'000, step_board},
                         {2'000'000, step_to_board}, {2'000'200, step_from_board}};

static void run(uint64_t nanoseconds) {
  static uint64_t now = 0;
  for (uint64_t end = now + nanoseconds * 1'000'000; now < end;) {
    now = UINT64_MAX;
    for (const Clock &clock : clocks) now = std::min(now, clock.next);
    for (Clock &clock : clocks)
      if (clock.next == now) {
        clock.step();
        soc.eval();
        clock.next += clock.femtoseconds;
      }
  }
}

static Bytes from_hex(const std::string &text) {
  Bytes bytes;
  for (size_t k = 0; k + 1 < text.size(); k += 2)
    bytes.push_back(std::stoi(text.substr(k, 2), nullptr, 16));
  return bytes;
}

int main() {
  soc.clocks_reset = 1;
  run(1'000);
  soc.clocks_reset = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string kind, hex;
    uint64_t nanoseconds;
    Message message{};
    words >> kind;
    if (kind == "run" && words >> nanoseconds) {
      run(nanoseconds);
      continue;
    }
    words >> message.address >> message.port >> hex;
    message.data = from_hex(hex);
    (kind == "udp" ? udp : icmp).queue.push_back(message);
  }
  std::printf("errors %u\n", soc.errors_preamble + soc.errors_fcs);
}
