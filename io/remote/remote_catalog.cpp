#include "io/remote/remote_catalog.h"

#include "io/remote/user_command.h"
#include "recipe/command_keys.h"
#include "recipe/placeholders.h"
#include "runtime/error.h"

namespace tutti {
namespace {

struct Program {
  const char* name;
  RemoteCommands commands;
};

// Without --ignore-times rclone takes files of one size for equal where a store has no times.
const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"rclone",
       {"rclone copyto --ignore-times {source} {target}", "rclone copyto --ignore-times {source} {target}",
        "rclone lsf --recursive --files-only {remote}", "rclone purge {remote}", /*colon_paths=*/true}},
      {"s3cmd",
       {"s3cmd put {source} {target}", "s3cmd get --force {source} {target}",
        "s3cmd ls --recursive {remote}/", "s3cmd del --recursive --force {remote}/"}},
      {"aws",
       {"aws s3 cp --only-show-errors {source} {target}", "aws s3 cp --only-show-errors {source} {target}",
        "aws s3 ls --recursive {remote}/", "aws s3 rm --recursive --only-show-errors {remote}/"}},
  };
  return all;
}

std::vector<std::string> names_of_programs() {
  std::vector<std::string> names;
  for (const Program& program : programs()) names.emplace_back(program.name);
  return names;
}

void replace_by(const Given<std::optional<std::string>>& key, const std::vector<std::string>& fields,
                std::string& command) {
  if (!key->has_value()) return;
  try {
    require_fields(**key, fields);
  } catch (const UserError& error) {
    key.fail(error.message());
  }
  command = **key;
}

}  // namespace

std::optional<RemoteCommands> known_commands(const std::string& name) {
  for (const Program& program : programs())
    if (name == program.name) return program.commands;
  return std::nullopt;
}

Kind<RemoteKeys> RemoteKeys::kind() {
  using Keys = RemoteKeys;
  const auto line = [](const char* name, Given<std::optional<std::string>> Keys::*member, const char* doc) {
    return option(name, member, doc).as(KeyType::kText);
  };
  return {"remote",
          "The program that copies files to and from a store such as S3, for a save_folder, load_path or "
          "remote of SCHEME://...",
          {line("command", &Keys::command,
                "a program that tutti knows; with rclone the scheme is the name of a remote in its "
                "configuration")
               .one_of(names_of_programs()),
           line("upload_command", &Keys::upload_command,
                "the command line that copies a file there, in place of the program's: \"gcloud storage cp "
                "{source} {target}\""),
           line("fetch_command", &Keys::fetch_command,
                "the command line that copies a file from there: \"gcloud storage cp {source} {target}\""),
           line("list_command", &Keys::list_command,
                "the command line that prints all files below a folder, a line each: \"gcloud storage ls "
                "{remote}/**\""),
           line("delete_command", &Keys::delete_command,
                "the command line that removes a folder: \"gcloud storage rm -r {remote}\"; default: of the "
                "program, or nothing is removed"),
           option("num_attempts", &Keys::num_attempts, "attempts of a command that fails")
               .at_least(1)
               .at_most(1000),
           option("retry_interval", &Keys::retry_interval,
                  "the wait before the second attempt; doubled with each, up to a minute")
               .in_units({"sec"}),
           option("timeout", &Keys::timeout, "a command that takes longer is ended, and has failed")
               .in_units({"sec"})
               .at_least(1)
               .at_most(1e6),
           option("finish_timeout", &Keys::finish_timeout,
                  "how long the end of a run waits for uploads; then the run ends with exit code 3")
               .in_units({"sec"})
               .at_most(1e6)}};
}

Catalog remote_catalog() {
  Catalog catalog = section_catalog<RemoteKeys>();
  catalog.default_kind = "none";
  return catalog;
}

RemoteKeys RemoteKeys::read(const Setting& recipe) {
  return recipe.has("remote") ? kind().read(recipe.at("remote")) : RemoteKeys();
}

RemoteCommands RemoteKeys::commands(const Setting& user) const {
  RemoteCommands commands = command->has_value() ? *known_commands(**command) : RemoteCommands();
  replace_by(upload_command, {kSourceField, kTargetField}, commands.upload);
  replace_by(fetch_command, {kSourceField, kTargetField}, commands.fetch);
  replace_by(list_command, {kRemoteField}, commands.list);
  replace_by(delete_command, {kRemoteField}, commands.remove);
  if (commands.upload.empty() || commands.fetch.empty() || commands.list.empty())
    user.fail(
        "a remote path needs [remote] command = \"rclone\", \"s3cmd\" or \"aws\", or upload_command, "
        "fetch_command and list_command");
  return commands;
}

void RemoteKeys::require_whole_commands() const {
  for (const auto* line : {&upload_command, &fetch_command, &list_command, &delete_command})
    if ((*line)->has_value()) require_whole_command(line->key);
}

std::string named_by(const RemoteCommands& commands, const std::string& path) {
  if (!commands.colon_paths || !is_remote_path(path)) return path;
  const std::size_t at = path.find("://");
  return path.substr(0, at) + ':' + path.substr(at + 3);
}

}  // namespace tutti
