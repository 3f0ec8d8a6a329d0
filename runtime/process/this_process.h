#pragma once

#include <string>

namespace tutti {

// The versions that libtutti.so and its plugins must share: "tutti 0.1.0, libtorch 2.11, GNU 12.2.0". Returns
// `elsewhere` outside of libtutti.so.
std::string build_stamp(const std::string& elsewhere);

// build_stamp and the commit: "..., commit 2c63f0a", "-dirty" if files were changed, "unknown" outside of
// git.
std::string build_and_commit(const std::string& elsewhere);

std::string host_name();

// Makes one of several ranks report an error that all meet at about the same time: `first_to_report` is true
// for the rank that locks the shared file at `path` first, and if the file cannot be locked. This rank then
// calls `linger` (half a second), so that others find the lock held. Async-signal-safe.
bool first_to_report(const char* path);
void linger();

}  // namespace tutti
