#include "data/shards/fetch_command.h"

#include <filesystem>

#include "io/remote/remote_catalog.h"
#include "io/remote/user_command.h"
#include "recipe/command_keys.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/process_watch.h"

namespace tutti {

void require_fetch_command(const std::string& command) {
  if (!known_commands(command)) require_fields(command, {kSourceField, kTargetField});
}

void fetch_file(const std::string& command, const std::string& source, const std::string& target,
                const std::string& log) {
  if (is_command_name(command))
    throw OperatingError(on_one_line(source) +
                         " must be fetched, and of the command that fetches, which may have secrets in "
                         "it, a run keeps its first word; give the whole, like --set data.train.fetch='...'");
  RemoteCommands commands{.fetch = command};
  if (const auto known = known_commands(command)) commands = *known;
  run({.line = commands.fetch,
       .fields = {{kSourceField, named_by(commands, source)}, {kTargetField, target}},
       .task = "fetches " + on_one_line(source),
       .log = log,
       .while_waiting = [] { require_no_held_stop("a file was fetched"); }});
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(target, ignored))
    throw OperatingError(command_name(command) + ", which fetches " + on_one_line(source) +
                         ", ended well, and has not made its {target}");
}

}  // namespace tutti
