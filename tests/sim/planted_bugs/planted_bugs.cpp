#include "tests/sim/planted_bugs/planted_bugs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/error.h"
#include "tests/sim/environment/disk_below.h"
#include "tests/sim/planted_bugs/broken_group.h"

namespace tutti {
namespace {

// ---- disks

class FileThatForgetsToSync final : public WritableFile {
 public:
  explicit FileThatForgetsToSync(std::unique_ptr<WritableFile> below) : below_(std::move(below)) {}
  void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
    below_->write_at(offset, bytes);
  }
  void append(std::span<const std::byte> bytes) override { below_->append(bytes); }
  void sync() override {}
  void close() override { below_->close(); }

 private:
  std::unique_ptr<WritableFile> below_;
};

// Files of this name are not synced before they are called durable.
class ForgetsToSync final : public DiskBelow {
 public:
  ForgetsToSync(std::unique_ptr<Disk> below, std::string name)
      : DiskBelow(std::move(below)), name_(std::move(name)) {}
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    auto file = below_->open(path, truncate);
    if (path.find(name_) == std::string::npos) return file;
    return std::make_unique<FileThatForgetsToSync>(std::move(file));
  }

 private:
  std::string name_;
};

// A resumed run does not see its log, and begins another.
class HidesTheLog final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  bool exists(const std::string& path) const override {
    return !path.ends_with("/metrics.jsonl") && below_->exists(path);
  }
};

class ForgetsFolders final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  void sync_folder(const std::string&) override {}
};

// A rename that is a copy and a removal.
class CopiesInsteadOfRenaming final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  void rename(const std::string& from, const std::string& to) override {
    if (from.find("/.ep") == std::string::npos) return below_->rename(from, to);
    below_->make_folders(to);
    auto names = below_->list(from);
    std::reverse(names.begin(), names.end());
    for (const auto& name : names) {
      const auto file = below_->open(to + "/" + name, true);
      file->append(below_->read(from + "/" + name));
      file->sync();
    }
    below_->remove_all(from);
  }
};

// A rank's file is called durable at once, and written when its next one is begun.
class WritesLate final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    auto file = below_->open(path, truncate);
    if (path.find("/rank-") == std::string::npos) return file;
    if (late_) late_->land();
    late_ = std::make_shared<Late>();
    late_->file = std::move(file);
    return std::make_unique<File>(late_);
  }

 private:
  struct Late {
    std::unique_ptr<WritableFile> file;
    std::vector<std::pair<uint64_t, std::vector<std::byte>>> writes;
    void land() {
      for (const auto& [offset, bytes] : writes) file->write_at(offset, bytes);
      file->sync();
    }
  };
  class File final : public WritableFile {
   public:
    explicit File(std::shared_ptr<Late> late) : late_(std::move(late)) {}
    void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
      late_->writes.push_back({offset, {bytes.begin(), bytes.end()}});
      end_ = std::max(end_, offset + bytes.size());
    }
    void append(std::span<const std::byte> bytes) override { write_at(end_, bytes); }
    void sync() override {}
    void close() override {}

   private:
    std::shared_ptr<Late> late_;
    uint64_t end_ = 0;
  };

  std::shared_ptr<Late> late_;
};

// A failed write is reported as a success.
class SwallowsErrors final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    struct File final : WritableFile {
      std::unique_ptr<WritableFile> below;
      void write_at(uint64_t offset, std::span<const std::byte> bytes) override try {
        below->write_at(offset, bytes);
      } catch (const OperatingError&) {
      }
      void append(std::span<const std::byte> bytes) override try {
        below->append(bytes);
      } catch (const OperatingError&) {
      }
      void sync() override { below->sync(); }
      void close() override { below->close(); }
    };
    auto file = std::make_unique<File>();
    file->below = below_->open(path, truncate);
    return file;
  }
};

template <class Broken, class... More>
std::function<SimSeams()> disk_bug(More... more) {
  return [=] {
    SimSeams seams;
    seams.disk = [=](std::unique_ptr<Disk> disk, int) -> std::unique_ptr<Disk> {
      return std::make_unique<Broken>(std::move(disk), more...);
    };
    return seams;
  };
}

// ---- collectives

// The last rank's gradients are left out where it comes last: the others did not wait for it.
class LeavesOutTheLate final : public GroupBelow {
 public:
  LeavesOutTheLate(std::unique_ptr<Group> below, std::shared_ptr<int> come)
      : GroupBelow(std::move(below)), come_(std::move(come)) {}
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    const bool is_last = ++*come_ % size() == 0;
    if (is_last && rank() == size() - 1 && label.starts_with("bucket")) inout.zero_();
    return below_->all_reduce(inout, label);
  }

 private:
  std::shared_ptr<int> come_;
};

// The last rank's gradients are left out, always and on all ranks alike.
class LeavesOutTheLast final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (rank() == size() - 1 && label.starts_with("bucket")) inout.zero_();
    return below_->all_reduce(inout, label);
  }
};

// A rank takes its own verdict for that of all, and its gradients for summed.
class IsContentWithItsOwn final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    struct Done final : Work {
      WorkPtr below;
      bool done() override { return true; }
      const CollectiveHeader& header() const override { return below->header(); }
      bool finite() const override { return true; }
    };
    auto work = below_->all_reduce(inout, label);
    if (rank() != 1 || label != "verdict") return work;
    auto done = std::make_unique<Done>();
    done->below = std::move(work);
    return done;
  }
};

// A rank stops when it is asked to, instead of when all are.
class StopsAlone final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (label != "verdict") return below_->all_reduce(inout, label);
    const at::Tensor own = inout.clone();
    struct OwnStop final : Work {
      WorkPtr below;
      at::Tensor inout, own;
      bool done() override {
        if (!below->done()) return false;
        const int64_t at = place_of(&Verdict::stop);
        inout.select(0, at).copy_(own.select(0, at));
        return true;
      }
      const CollectiveHeader& header() const override { return below->header(); }
      bool finite() const override { return below->finite(); }
    };
    auto work = std::make_unique<OwnStop>();
    work->below = below_->all_reduce(inout, label);
    work->inout = inout;
    work->own = own;
    return work;
  }
};

// ---- control messages

class TransportBelow : public Transport {
 public:
  explicit TransportBelow(std::unique_ptr<Transport> below) : below_(std::move(below)) {}
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  void send(int to, std::string bytes) override { below_->send(to, std::move(bytes)); }
  std::optional<Packet> poll() override { return below_->poll(); }

 protected:
  std::unique_ptr<Transport> below_;
};

class LosesEveryThird final : public TransportBelow {
 public:
  using TransportBelow::TransportBelow;
  void send(int to, std::string bytes) override {
    if (++sent_ % 3 != 0) below_->send(to, std::move(bytes));
  }

 private:
  int sent_ = 0;
};

// A message leaves when the next one comes.
class HoldsTheLastOne final : public TransportBelow {
 public:
  using TransportBelow::TransportBelow;
  void send(int to, std::string bytes) override {
    if (held_) below_->send(held_->from, std::move(held_->bytes));
    held_ = Packet{to, std::move(bytes)};
  }

 private:
  std::optional<Packet> held_;  // `from`: to whom
};

template <class Broken>
std::function<SimSeams()> transport_bug() {
  return [] {
    SimSeams seams;
    seams.transport = [](std::unique_ptr<Transport> way, int) -> std::unique_ptr<Transport> {
      return std::make_unique<Broken>(std::move(way));
    };
    return seams;
  };
}

SimSeams late_are_left_out() {
  SimSeams seams;
  const auto come = std::make_shared<int>(0);
  seams.group = [come](std::unique_ptr<Group> group, int) -> std::unique_ptr<Group> {
    return std::make_unique<LeavesOutTheLate>(std::move(group), come);
  };
  return seams;
}

// ---- data

// The order of an epoch depends on when the job was started.
class ReshufflesOnResume final : public Dataset {
 public:
  ReshufflesOnResume(DatasetPtr below, int start) : below_(std::move(below)), start_(start) {}
  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override { return below_->spec(); }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override {
    return below_->get(indices, epoch);
  }
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed + start_, epoch, position, shuffle);
  }
  uint64_t digest() const override { return below_->digest(); }

 private:
  DatasetPtr below_;
  int start_;
};

SimSeams reshuffles_on_resume() {
  SimSeams seams;
  seams.job = [](Job& job, int start) { job.train = std::make_shared<ReshufflesOnResume>(job.train, start); };
  return seams;
}

// Initial weights are drawn from a seed of each attempt.
SimSeams new_weights_at_each_start() {
  SimSeams seams;
  seams.job = [](Job& job, int start) { job.seed += start; };
  return seams;
}

}  // namespace

std::vector<Bug> planted_bugs() {
  std::vector<Bug> bugs = {
      {"RankFilesAreNotSynced", "power_loss", disk_bug<ForgetsToSync>(std::string("rank-"))},
      {"TheManifestIsNotSynced", "power_loss", disk_bug<ForgetsToSync>(std::string("manifest"))},
      {"FoldersAreNotSynced", "power_loss", disk_bug<ForgetsFolders>()},
      {"TheLogIsNotSynced",
       "power_loss",
       disk_bug<ForgetsToSync>(std::string("metrics")),
       {},
       "metrics.jsonl, line"},
      {"ALogBeginsAnewOnResuming", "death", disk_bug<HidesTheLog>(), {}, "metrics.jsonl, line"},
      {"PublishingCopiesFiles", "death", disk_bug<CopiesInsteadOfRenaming>()},
      {"FilesAreWrittenAfterTheyAreCalledDurable", "", disk_bug<WritesLate>(), {}, "ended with exit code 3"},
      {"FailedWritesPassForWritten", "disk_full write_error", disk_bug<SwallowsErrors>()},
      {"LateGradientsAreLeftOut", "", late_are_left_out},
      {"TheLastRanksGradientsAreLeftOut", "", group_bug<LeavesOutTheLast>(), {}, "other bits"},
      {"TheVerdictIsNotWaitedFor", "", group_bug<IsContentWithItsOwn>()},
      {"ARankStopsAlone", "sigterm", group_bug<StopsAlone>()},
      {"ControlMessagesAreLost", "", transport_bug<LosesEveryThird>()},
      {"TheLastControlMessageIsHeldBack", "", transport_bug<HoldsTheLastOne>()},
      {"ResumingReshuffles", "death", reshuffles_on_resume},
      {"EachAttemptHasItsOwnSeed", "death", new_weights_at_each_start},
  };
  for (auto* more : {bugs_of_actors, bugs_of_memory, bugs_of_sharding, bugs_of_state})
    for (Bug& bug : more()) bugs.push_back(std::move(bug));
  return bugs;
}

}  // namespace tutti
