#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "runtime/disk.h"
#include "tests/runtime/scratch.h"

namespace tutti {

// Begins the journals of a made-up run, as many as it has ranks.
struct RunToRecord {
  std::string dir;
  int world = 2;
  std::string recipe = "seed = 17\n[optimizer]\nlr = 0.1\n";
  JournalLevel level = JournalLevel::kFull;
  std::string nonce = "20260101T000000Z-00000000";
  std::vector<std::string> hosts = {"one", "one"};
  std::vector<int64_t> unix_ms = {0, 0};
  std::string digests = "sums";

  std::unique_ptr<JournalWriter> rank(int r) const {
    const std::string folder = journal_folder(dir, nonce);
    PosixDisk().make_folders(folder);
    RecordedJob head;
    head.recipe = recipe;
    head.level = level;
    head.nonce = nonce;
    head.world = world;
    head.rank = r;
    head.host = hosts.at(r);
    head.unix_ms = unix_ms.at(r);
    head.digests = digests;
    return std::make_unique<JournalWriter>(journal_path(folder, r), head.to_json());
  }
};

}  // namespace tutti
