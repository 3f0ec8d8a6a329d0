// Reading of checkpoints and weights by a trainee with a share of the rows.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/counting_disk.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"
#include "training/saved_tensors.h"
#include "training/trainee.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

const SampleSpec kFewImages{.shapes = {{"input", {2, 5, 5}}, {"target", {}}}, .classes = 8};

// A convolution with 4 rows, a linear layer with 8, running statistics, and the optimizer's momentum.
Setting recipe_of_rows(const std::string& weights) {
  std::vector<std::pair<std::string, Setting::Value>> model{
      {"kind", std::string("sequential")},
      {"layers", list_value({std::string("Conv2d(2, 4, 3)"), std::string("BatchNorm2d(4)"),
                             std::string("Flatten()"), std::string("Linear(36, 8)")})}};
  if (!weights.empty()) model.emplace_back("weights", weights);
  return section_with({{"model", section_with(model).value}, {"optimizer", momentum_sgd().value}});
}

struct TrainedRows : Trainee {
  explicit TrainedRows(uint64_t seed, const Share& of = {}, const std::string& weights = "") {
    topology.share = of;
    build(*this, recipe_of_rows(weights), kFewImages, seed);
  }
  Tensors saved() const {
    Tensors tensors;
    for (const SavedTensor& one : saved_tensors(*this)) tensors[one.name] = one.tensor.clone();
    return tensors;
  }
  void change() const {
    const at::NoGradGuard no_grad;
    double number = 0;
    for (const SavedTensor& one : saved_tensors(*this))
      one.tensor.copy_(at::arange(one.tensor.numel(), at::kLong).add(++number).reshape(one.tensor.sizes()));
  }
};

// A checkpoint saved by a number of ranks, each with its rows of the trainee.
void save(Disk& disk, const std::string& folder, TrainedRows& trained, int world) {
  CheckpointManifest manifest{{}, "{}"};
  const std::string unfinished = folder + ".unfinished";
  for (int rank = 0; rank < world; ++rank) {
    trained.topology.share = {.replicas = world, .replica = rank};
    auto pieces = checkpoint_pieces(trained);
    for (CheckpointPiece& piece : pieces) piece.tensor = piece.tensor.contiguous();
    manifest.files.push_back(write_rank_file(disk, unfinished, rank, pieces));
  }
  publish_checkpoint(disk, unfinished, folder, manifest);
}

class SharedFiles : public testing::Test {
 protected:
  SharedFiles() {
    whole_.change();
    for (const int world : {1, 2, 4}) save(disk_, folder(world), whole_, world);
  }
  std::string folder(int world) const { return scratch_.path("of-" + std::to_string(world)); }

  // Expects that the trainee has the rows of the whole one.
  void expect_rows(const TrainedRows& shared) const {
    const Tensors all = whole_.saved();
    for (const SavedTensor& one : saved_tensors(shared)) {
      EXPECT_TRUE(one.tensor.equal(narrowed(all.at(one.name), one.region))) << one.name;
    }
  }
  static uint64_t bytes_of(const TrainedRows& trained) {
    uint64_t bytes = 0;
    for (const SavedTensor& one : saved_tensors(trained)) bytes += one.tensor.nbytes();
    return bytes;
  }

  Scratch scratch_;
  CountingDisk disk_;
  TrainedRows whole_{7};
};

TEST_F(SharedFiles, OfAnyWorldGiveAnyShareItsRowsAndNoOthersAreRead) {
  for (const int world : {1, 2, 4}) {
    for (int pieces = 1; pieces <= 4; ++pieces) {
      for (int index = 0; index < pieces; ++index) {
        TrainedRows shared(8, {pieces, index});
        at::Tensor& images = shared.views[0].tensor;  // of the convolution
        images.set_data(images.detach().contiguous(at::MemoryFormat::ChannelsLast));
        const CheckpointTensors tensors(disk_, open_checkpoint(disk_, folder(world)));
        disk_.reads.clear();
        restore_tensors(shared, tensors, "files");
        expect_rows(shared);
        EXPECT_EQ(disk_.bytes_of("/rank-"), bytes_of(shared)) << world << ' ' << pieces << ' ' << index;
      }
    }
  }
  EXPECT_LE(static_cast<double>(bytes_of(TrainedRows(8, {4, 0}))), 0.28 * bytes_of(whole_));
}

TEST_F(SharedFiles, AreReadIntoAnotherDtype) {
  TrainedRows low(8);
  for (const NamedParameter& one : low.parameters)
    one.parameter->tensor.set_data(one.parameter->tensor.to(at::kBFloat16));
  restore_model(low, CheckpointTensors(disk_, open_checkpoint(disk_, folder(2))), "files");
  for (std::size_t p = 0; p < low.parameters.size(); ++p)
    EXPECT_TRUE(
        low.parameters[p].parameter->tensor.equal(whole_.parameters[p].parameter->tensor.to(at::kBFloat16)));
}

TEST_F(SharedFiles, AsInitialWeightsGiveAShareItsRows) {
  Tensors tensors;
  for (const SavedTensor& one : weights_of(whole_)) tensors[one.name] = one.tensor;
  const std::string file = scratch_.path("weights.safetensors");
  write_safetensors(disk_, file, {tensors, {}});
  for (const std::string& weights : {file, folder(2), folder(4) + "/checkpoint.h5"}) {
    const TrainedRows shared(8, {3, 1}, weights);
    for (const ParamView& view : shared.views)
      EXPECT_TRUE(view.tensor.equal(narrowed(whole_.saved().at("model/" + view.name), view.region)))
          << weights << ' ' << view.name;
  }
}

TEST_F(SharedFiles, AsInitialWeightsAreVerifiedByTheSharesTogether) {
  flip_bit(folder(2) + "/rank-1.h5", 100);
  EXPECT_NO_THROW(TrainedRows(8, {2, 0}, folder(2)));
  EXPECT_THAT(message_of<UserError>([&] {
                TrainedRows(8, {2, 1}, folder(2));
              }),
              HasSubstr("rank-1.h5: corrupt"));
  EXPECT_THAT(message_of<UserError>([&] { TrainedRows(8, {}, folder(2)); }), HasSubstr("rank-1.h5: corrupt"));
}

}  // namespace
}  // namespace tutti
