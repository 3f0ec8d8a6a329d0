#pragma once

#include <string>

namespace tutti {

// Throws UserError unless the command line has {source} and {target}, both outside of quotes, in which sh
// would take apart the inserted names, or is the name of a program that tutti knows
// (io/remote/remote_catalog.h).
void require_fetch_command(const std::string& command);

// Copies the file `source` to the local file `target` by a command line of the user, in which {source} and
// {target} stand for the files, as words that sh does not look into. Waits for its end. Throws OperatingError
// with the command's name, the source, the exit code and `log`, a file of the command's output, in which
// secrets may be. `target` is made by the command.
void fetch_file(const std::string& command, const std::string& source, const std::string& target,
                const std::string& log);

}  // namespace tutti
