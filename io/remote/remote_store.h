#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/remote/remote_catalog.h"
#include "runtime/clock.h"
#include "runtime/log.h"

namespace tutti {

// A folder of a remote store, reached by the commands of [remote]. Each call tries a command that fails
// again, and throws OperatingError after the last attempt. For one thread.
class RemoteStore {
 public:
  struct Options {
    RemoteKeys keys;
    RemoteCommands commands;
    std::string folder;                        // "s3://bucket/run"
    std::string log;                           // gets what a failed command printed
    bool gives_way = false;                    // UserCommand::gives_way
    Warn on_retry = {};                        // gets the failure of each attempt but the last; may be empty
    std::function<void()> while_waiting = {};  // called often; throws to end the call
  };
  explicit RemoteStore(Options options);

  const std::string& folder() const { return options_.folder; }
  // A path for a small file of the caller's.
  std::string scratch(const std::string& name) const { return options_.log + '.' + name; }
  bool removes() const { return !options_.commands.remove.empty(); }

  // The files in the folder and below, as paths below the folder; other lines of the output are left out.
  std::vector<std::string> list() const;
  void upload(const std::string& local, const std::string& name) const;
  void fetch(const std::string& name, const std::string& local) const;
  void remove(const std::string& name) const;  // a folder

 private:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  std::string path(const std::string& name) const;
  void attempt(const std::string& line, const Fields& fields, const std::string& task,
               const std::string& output = "/dev/null") const;
  void wait(Nanoseconds time) const;

  Options options_;
};

// The path below `folder` of a file in a listing, which is relative, or has the bucket or all of the folder
// in front; "" if the file is elsewhere.
std::string path_below_folder(const std::string& listed, const std::string& folder);

}  // namespace tutti
