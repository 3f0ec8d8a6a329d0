#pragma once

#include <string>
#include <vector>

namespace tutti {

// Runs a program in a process group of its own, out of reach of a terminal's Ctrl-C. Returns its exit code;
// 128 + N if signal N ended the program. The first signal that asks this process to stop (SIGINT, SIGTERM,
// SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU) becomes SIGUSR1 for the program, again and again in its first 30 s, when
// it may not listen yet; each later one is handed on as it is. A program that such a SIGUSR1 ends returns 1.
// SIGTSTP (Ctrl-Z) and SIGCONT reach both. A pipe's reader that leaves does not end the program: the rest of
// its output is dropped. If this process is killed, the system sends SIGTERM to the program. For processes
// with one thread; blocks these signals. Throws OperatingError if the program cannot start.
int run_supervised(const std::vector<std::string>& words);

}  // namespace tutti
