#pragma once

#include <functional>
#include <string>

namespace tutti {

// The versions that libtutti.so and its plugins must share: "tutti 0.1.0, libtorch 2.11, GNU 12.2.0". Returns
// `elsewhere` outside of libtutti.so.
std::string build_stamp(const std::string& elsewhere);

// build_stamp and the commit: "..., commit 2c63f0a", "-dirty" if files were changed, "unknown" outside of
// git.
std::string build_and_commit(const std::string& elsewhere);

std::string host_name();

// The command that started this process, as text for a shell: "tutti train 'my recipe.toml'". `shown`: the
// text to show for a word.
std::string command_line(const std::function<std::string(const std::string& word)>& shown);
// The executable or library that has this code.
std::string path_of_code(const void* code);

// The ranks of a run that fail agree by locks on a shared file who reports it, so that no message is needed
// and a signal handler can report too. Called once a run by rank `rank`; `attempt` is the run's nonce.
// Without a call this process reports all its errors.
void share_reports(const std::string& file, const std::string& attempt, int rank);

// True for the first rank of the attempt that asks, and if the file cannot be locked. Async-signal-safe.
bool first_to_report();
const char* reporting_rank();  // "rank 2: ", "" without share_reports. Async-signal-safe.

// True for the first living process of this user that takes the name (of at most 100 bytes), and keeps it to
// its end; and where names do not work, as under a name that another user has taken.
bool take_name(const std::string& name);

// Prints an error before ranks share reports. Of a launcher's ranks on this host the first one prints, and
// each lingers: the first is known by a name that ends with its process.
void report_unshared(const std::string& error);

// Sleeps for half a second, while another rank reports: mpirun ends all ranks after a rank's end.
void linger();

}  // namespace tutti
