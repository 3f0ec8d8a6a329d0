#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/appended_file.h"
#include "runtime/disk.h"

namespace tutti {

// Values by name, each as JSON: W&B's also takes NaN, Infinity and -Infinity.
using WandbValues = std::map<std::string, std::string>;

// The run of a file. Empty texts are left out.
struct WandbRun {
  std::string id;
  std::string entity, project, group, job_type, name, notes, host;
  std::vector<std::string> tags;
  int64_t start_ms = 0;  // unix time
};

// The values of a step.
struct WandbRow {
  int64_t step = 0;
  WandbValues values;
};

// The file run-ID.wandb of an offline run of Weights & Biases, which `wandb sync` sends: protobufs `Record`
// of wandb_internal.proto in LevelDB's log format behind a header of seven bytes. If the process is killed,
// at most the last record is torn, and `wandb sync` ignores a torn record. Records are buffered until
// `flush`. If the disk is full, up to 1 MiB (or one larger record) is kept, and more records are dropped.
class WandbFile {
 public:
  WandbFile(Disk& disk, std::string path) : disk_(disk), file_(disk, std::move(path)) {}

  // A new file.
  void begin(const WandbRun& run);
  // What a resumed file has.
  struct Kept {
    WandbValues row;       // the row of `step`, which is cut off: more values of that step may come
    double runtime_s = 0;  // of the last row
  };
  // Opens a file of an earlier attempt, and cuts off the rows of `step` and later steps, with all records
  // behind the first of these rows and the record of the run's end.
  Kept resume(int64_t step);

  void config(const WandbValues& values);
  // A value within others: the keys from outside in.
  void config(const std::vector<std::string>& keys, const std::string& json);
  // The history of the run; each step once, in rising order.
  void row(const WandbValues& values, int64_t step);
  void summary(const WandbValues& values);
  void stats(const WandbValues& values, int64_t unix_ms);  // of the machine
  // Files that `wandb sync` sends, relative to the folder `files` beside this file.
  void files(const std::vector<std::string>& paths);
  void exit(int64_t runtime_s);

  // Throws OperatingError; no record is lost then.
  void flush(bool sync) { file_.flush(sync); }
  int64_t dropped() const { return file_.dropped(); }                 // records
  std::size_t unwritten() const { return file_.unwritten().size(); }  // bytes
  const std::string& path() const { return file_.path(); }

 private:
  void record(uint32_t field, const std::string& message);

  Disk& disk_;
  AppendedFile file_;
  int64_t records_ = 0;
};

// A row as bytes, for a file of its own, and back; damaged bytes are read up to the damage.
std::string bytes_of_row(const WandbRow& row);
WandbRow wandb_row(std::string_view bytes);

}  // namespace tutti
