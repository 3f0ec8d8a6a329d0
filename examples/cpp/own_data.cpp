// A dataset and two callbacks of one's own as a plugin; used by own_data.toml and explained in
// docs/plugins.md.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <tutti/data/dataset.h>
#include <tutti/job/plugin.h>
#include <tutti/runtime/error.h>
#include <tutti/training/state.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

// Records of a file: a byte for the class, then height x width bytes, the pixels. Read when they are asked
// for, so the file may be larger than memory.
class Records final : public tutti::Dataset {
 public:
  Records(const tutti::Setting& file, int64_t height, int64_t width, int64_t classes)
      : path_(file.text()), height_(height), width_(width), classes_(classes) {
    std::error_code error;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path_, error));
    if (error) file.fail("cannot be read: " + error.message());
    if (bytes == 0 || bytes % record_bytes() != 0)
      file.fail("expected records of " + std::to_string(record_bytes()) + " bytes, found " +
                std::to_string(bytes) + " bytes");
    size_ = bytes / record_bytes();
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) file.fail("cannot be opened");
  }
  ~Records() override { close(descriptor_); }

  int64_t size() const override { return size_; }
  tutti::SampleSpec spec() const override {
    return {.shapes = {{"input", {1, height_, width_}}, {"target", {}}},
            .classes = classes_,
            .dtypes = {{"input", at::kFloat}, {"target", at::kLong}}};
  }
  // Many threads call this function at once: pread has no place in the file that they could share.
  tutti::Batch get(std::span<const int64_t> indices, const tutti::Epoch&) const override {
    const auto count = static_cast<int64_t>(indices.size());
    const at::Tensor bytes = at::empty({count, record_bytes()}, at::kByte);
    for (int64_t row = 0; row < count; ++row)
      if (pread(descriptor_, bytes[row].data_ptr(), record_bytes(), indices[row] * record_bytes()) !=
          record_bytes())
        throw tutti::UserError({path_}, "record " + std::to_string(indices[row]) + " cannot be read");
    tutti::Batch batch;
    batch.set(
        "input",
        bytes.narrow(1, 1, height_ * width_).to(at::kFloat).div_(255).view({count, 1, height_, width_}));
    batch.set("target", bytes.select(1, 0).to(at::kLong));
    return batch;
  }
  uint64_t digest() const override { return tutti::digest_of_samples(*this); }

 private:
  int64_t record_bytes() const { return 1 + height_ * width_; }

  std::string path_;
  int64_t height_, width_, classes_, size_ = 0;
  int descriptor_ = -1;
};

// Ends the training when the loss at the end of an epoch has not been less than before for `patience` epochs.
struct Plateau final : tutti::Callback {
  explicit Plateau(int64_t patience) : patience(patience) {}
  std::string name() const override { return "Plateau"; }
  void epoch_end(tutti::State& state, tutti::Logger& logger) override {
    waited = state.train_loss < least ? 0 : waited + 1;
    least = std::fmin(least, state.train_loss);
    logger.log_metrics({{"plateau/least_loss", least}});
    if (waited >= patience)
      state.stop_training("the loss has not fallen for " + std::to_string(waited) + " epochs");
  }
  // What a resumed run needs to continue as if it had not ended.
  std::string state() const override {
    char text[64];
    std::snprintf(text, sizeof text, "[%ld, %.17g]", waited, least);
    return text;
  }
  void restore(const std::string& json) override {
    if (std::sscanf(json.c_str(), "[%ld, %lf]", &waited, &least) != 2)
      throw tutti::UserError("a state of Plateau was expected, found " + json);
  }

  int64_t patience, waited = 0;
  double least = 1e30;
};

// Logs the share of each class in the global batch: sums over all ranks, which travel with the step's
// verdict.
struct ClassShares final : tutti::Callback {
  std::string name() const override { return "ClassShares"; }
  int64_t reductions(const tutti::State& state) const override { return state.dataset->spec().classes; }
  void contribute(const tutti::State& state, std::span<double> counts) override {
    const at::Tensor classes = state.batch["target"].bincount({}, static_cast<int64_t>(counts.size()));
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] = classes[static_cast<int64_t>(i)].item<double>();
  }
  void reduced(tutti::State&, std::span<const double> sums) override {
    counts.assign(sums.begin(), sums.end());
  }
  void batch_end(tutti::State& state, tutti::Logger& logger) override {
    for (std::size_t i = 0; i < counts.size(); ++i)
      logger.log_metrics(
          {{"class_share/" + std::to_string(i), counts[i] / static_cast<double>(state.global_batch)}});
  }

  std::vector<double> counts;
};

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  using enum tutti::KeyType;
  plugin.keys.datasets["records"] = {{"file", kPath, "", "bytes: for each sample its class and its pixels"},
                                     tutti::Key{"height", kInteger, "", "pixels"}.at_least(1),
                                     tutti::Key{"width", kInteger, "", "pixels"}.at_least(1),
                                     tutti::Key{"classes", kInteger, "", "classes are below"}.at_least(1)};
  plugin.datasets["records"] = [](const tutti::Setting& options) {
    return std::make_shared<Records>(options.at("file"), options.at("height").integer(),
                                     options.at("width").integer(), options.at("classes").integer());
  };
  plugin.keys.callbacks["plateau"] = {
      tutti::Key{"patience", kInteger, "3", "epochs without a smaller loss"}.at_least(1)};
  plugin.callbacks["plateau"] = [](const tutti::Setting& options) {
    return std::make_shared<Plateau>(options.at("patience").integer());
  };
  plugin.callbacks["class_shares"] = [](const tutti::Setting&) { return std::make_shared<ClassShares>(); };
}
