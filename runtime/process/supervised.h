#pragma once

#include <string>
#include <vector>

namespace tutti {

// Runs a program in a process group of its own, out of reach of a terminal's Ctrl-C. Returns its exit code;
// 128 + N if signal N ended the program. The first signal that asks this process to stop (SIGINT, SIGTERM,
// SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU) becomes SIGUSR1 for the program; each later one is handed on as it is.
// If this process is killed, the system sends SIGTERM to the program. For processes with one thread; blocks
// these signals. Throws OperatingError if the program cannot start.
int run_supervised(const std::vector<std::string>& words);

}  // namespace tutti
