#pragma once

#include <string>

namespace tutti {

// Copies the file `source` to the local file `target` by a command line of the user, in which {source} and
// {target} stand for them; both are quoted for the shell. Waits for its end. Throws OperatingError with the
// command, its exit code and the last line that it wrote to standard error. `target` is made by the command.
void fetch_file(const std::string& command, const std::string& source, const std::string& target);

}  // namespace tutti
