// Clocks the SoC, and connects its UARTBone to a TCP port of this computer: bench PORT.
//
// Ends when the program that started it does.

#include "Vsoc.h"
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int listen_on(int port) {
  int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(server, (sockaddr *)&address, sizeof address) || listen(server, 1)) {
    std::perror("bench");
    std::exit(1);
  }
  socklen_t size = sizeof address;
  getsockname(server, (sockaddr *)&address, &size);
  std::printf("port %d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return server;
}

int main(int count, char **words) {
  VerilatedContext context;
  Vsoc soc{&context};
  int server = listen_on(count > 1 ? std::atoi(words[1]) : 0), client = -1;
  unsigned char come[4096], go[4096];
  long first = 0, last = 0, out = 0;
  pid_t parent = getppid();
  for (unsigned long cycle = 0;; cycle++) {
    if (cycle % 65536 == 0 && getppid() != parent) return 0;
    // A system call costs as much as many cycles.
    if (cycle % 64 == 0 && (first == last || out)) {
      pollfd ready{client < 0 ? server : client, POLLIN, 0};
      if (poll(&ready, 1, 0) > 0) {
        int yes = 1;
        if (client < 0) {
          client = accept(server, nullptr, nullptr);
          setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        } else if (first == last) {
          first = 0;
          last = recv(client, come, sizeof come, 0);
          // litex_server sends a request in two parts, and the second waits for this answer.
          setsockopt(client, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof yes);
          if (last <= 0) close(client), client = -1, last = 0;
        }
      }
      if (out && client >= 0) send(client, go, out, MSG_NOSIGNAL);
      out = 0;
    }
    soc.sys_rst = cycle < 10;
    soc.sys_clk = 0;
    soc.serial_sink_valid = first != last;
    soc.serial_sink_data = come[first];
    soc.serial_source_ready = out < (long)sizeof go;
    soc.eval();
    bool taken = soc.serial_sink_valid && soc.serial_sink_ready;
    if (soc.serial_source_valid && soc.serial_source_ready) go[out++] = soc.serial_source_data;
    soc.sys_clk = 1;
    soc.eval();
    first += taken;
  }
}
