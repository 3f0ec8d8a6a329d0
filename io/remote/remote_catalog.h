#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/section.h"
#include "recipe/time/time.h"

// [remote]. Free of libtorch.
namespace tutti {

inline constexpr const char *kSourceField = "{source}", *kTargetField = "{target}",
                            *kRemoteField = "{remote}";  // in command lines

// The command lines by which files of a remote store are copied.
struct RemoteCommands {
  std::string upload, fetch;  // a file: {source}, {target}
  std::string list;           // prints the files in the folder {remote} and below
  std::string remove;         // the folder {remote}; "" = nothing is removed
  bool colon_paths = false;   // the program calls s3://bucket/folder s3:bucket/folder
};

// [remote]
struct RemoteKeys {
  Given<std::optional<std::string>> command;  // a program that tutti knows
  Given<std::optional<std::string>> upload_command, fetch_command, list_command, delete_command;
  int num_attempts = 5;                                       // of a command that fails
  Time retry_interval = {1, TimeUnit::kSecond};               // doubled with each attempt
  Time timeout = {1800, TimeUnit::kSecond};                   // of a command
  Given<Time> finish_timeout = Time{600, TimeUnit::kSecond};  // of the uploads at the end of a run

  static Kind<RemoteKeys> kind();
  static RemoteKeys read(const Setting& recipe);  // resolved
  // Throws UserError if a command line lacks a field, or `user`, a key with a remote path, lacks a command.
  RemoteCommands commands(const Setting& user) const;
  // Throws UserError if the recipe has only the name of a command.
  void require_whole_commands() const;
};

Catalog remote_catalog();

// The commands of a program that tutti knows, else none.
std::optional<RemoteCommands> known_commands(const std::string& program);

// A path of the recipe as the program of the commands writes the path.
std::string named_by(const RemoteCommands& commands, const std::string& path);

}  // namespace tutti
