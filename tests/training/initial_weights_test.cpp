// How weights of a file find their places in a model: [model] weights, weights_strict, weights_ignore and
// weights_rename. trainee_test.cpp has those before and after surgery.
#include "training/initial_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/counting_disk.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;
using Keys = std::vector<std::pair<std::string, Setting::Value>>;

const SampleSpec kFlat{.shapes = {{"input", {4}}, {"target", {}}}, .classes = 3};
const SampleSpec kText{.shapes = {{"input", {6}}, {"target", {6}}},
                       .dtypes = {{"input", at::kLong}, {"target", at::kLong}}};

Setting::Value texts(const std::vector<std::string>& items) {
  return list_value(std::vector<Setting::Value>(items.begin(), items.end()));
}

class WeightsByName : public testing::Test {
 protected:
  struct Loaded : Trainee {
    Loaded(const Keys& model, const SampleSpec& spec, const Share& share = {}) {
      topology.share = share;
      build(*this, section_with({{"model", section_with(model).value}, {"optimizer", momentum_sgd().value}}),
            spec, 1);
    }
    at::Tensor operator[](const std::string& name) const {
      for (const SavedTensor& one : weights_of(*this))
        if (one.name == name) return one.tensor;
      ADD_FAILURE() << "no " << name;
      return {};
    }
  };

  Keys flat(const Tensors& tensors, const Keys& others = {}) {
    PosixDisk disk;
    write_safetensors(disk, path_, {tensors, {}});
    Keys keys{{"kind", std::string("sequential")},
              {"layers", texts({"Linear(4, 8)", "BatchNorm1d(8)", "Linear(8, 3)"})},
              {"weights", path_}};
    keys.insert(keys.end(), others.begin(), others.end());
    return keys;
  }
  Keys gpt(const Tensors& tensors) {
    PosixDisk disk;
    write_safetensors(disk, path_, {tensors, {}});
    return {{"kind", std::string("gpt")},
            {"vocab_size", int64_t{9}},
            {"n_positions", int64_t{6}},
            {"n_embd", int64_t{4}},
            {"n_layer", int64_t{1}},
            {"n_head", int64_t{2}},
            {"dropout", 0.0},
            {"weights", path_}};
  }
  std::string refused(const Keys& model, const SampleSpec& spec = kFlat) {
    return message_of<UserError>([&] { Loaded(model, spec); });
  }
  static Tensors all_of(const Loaded& loaded) {
    Tensors tensors;
    for (const SavedTensor& one : weights_of(loaded)) tensors[one.name] = one.tensor.detach().clone();
    return tensors;
  }

  Scratch folder_;
  std::string path_ = folder_.path("weights.safetensors");
  Tensors good_ = {{"0.weight", at::rand({8, 4})},
                   {"0.bias", at::rand({8})},
                   {"1.weight", at::rand({8})},
                   {"1.bias", at::rand({8})},
                   {"1.running_mean", at::rand({8})},
                   {"1.running_var", at::rand({8})},
                   {"2.weight", at::rand({3, 8})},
                   {"2.bias", at::rand({3})},
                   {"1.num_batches_tracked", at::scalar_tensor(5, at::kLong)}};
};

TEST_F(WeightsByName, OfHalfPrecisionAreConverted) {
  good_["0.weight"] = good_["0.weight"].to(at::kBFloat16);
  good_["2.weight"] = good_["2.weight"].to(at::kHalf);
  const Loaded loaded(flat(good_), kFlat);
  EXPECT_TRUE(loaded["0.weight"].equal(good_["0.weight"].to(at::kFloat)));
  EXPECT_TRUE(loaded["2.weight"].equal(good_["2.weight"].to(at::kFloat)));
  EXPECT_TRUE(loaded["1.num_batches_tracked"].equal(good_["1.num_batches_tracked"]));
  EXPECT_EQ(loaded.weights_note, "");
}

TEST_F(WeightsByName, IntegersAreNoWeights) {
  good_["0.weight"] = at::ones({8, 4}, at::kChar);
  EXPECT_THAT(refused(flat(good_)), HasSubstr("'0.weight' is int8, the model's is float32"));
}

TEST_F(WeightsByName, StatisticsAreNeededButNotTheirCount) {
  good_.erase("1.num_batches_tracked");
  EXPECT_TRUE(Loaded(flat(good_), kFlat)["1.running_mean"].equal(good_["1.running_mean"]));
  good_.erase("1.running_mean");
  EXPECT_THAT(refused(flat(good_)), HasSubstr("it holds no tensor '1.running_mean', which the model has"));
}

TEST_F(WeightsByName, MissingNamesAreShownBesideTheNearestOfTheFile) {
  good_["2.weigth"] = good_.extract("2.weight").mapped();
  good_["other"] = at::ones({1});
  EXPECT_THAT(refused(flat(good_)),
              AllOf(HasSubstr("section.weights = \"" + path_ + "\""),
                    HasSubstr("it holds no tensor '2.weight', which the model has; it holds '2.weigth' and 1 "
                              "more, which the model does not have; weights_rename")));
}

TEST_F(WeightsByName, WithoutStrictnessWhatIsMissingOrUnusedIsNoted) {
  good_.erase("2.weight");
  good_["other"] = at::ones({1});
  const Keys keys = flat(good_, {{"weights_strict", false}});
  const Loaded loaded(keys, kFlat);
  EXPECT_EQ(loaded.weights_note,
            path_ + ": not read, so as initialised: '2.weight'; not used of the file: 'other'");
  EXPECT_TRUE(loaded["2.bias"].equal(good_["2.bias"]));
  const Loaded fresh({keys[0], keys[1]}, kFlat);
  EXPECT_TRUE(loaded["2.weight"].equal(fresh["2.weight"]));
}

TEST_F(WeightsByName, WeightsNeitherReadNorTrainedAreNoted) {
  good_.erase("2.weight");
  const Keys keys = flat(good_, {{"weights_strict", false}, {"freeze", texts({"0.*", "2.weight"})}});
  EXPECT_EQ(Loaded(keys, kFlat).weights_note,
            path_ + ": not read, so as initialised: '2.weight'; neither read nor trained (freeze, or "
                    "modules_to_save of lora): '2.weight'");
}

TEST_F(WeightsByName, WithoutStrictnessAFileOfOtherNamesIsStillAnError) {
  EXPECT_THAT(refused(flat({{"other", at::ones({1})}}, {{"weights_strict", false}})),
              HasSubstr("none of its 1 tensors has a name that the model has"));
}

TEST_F(WeightsByName, AnotherShapeIsAnErrorUnlessIgnored) {
  good_["2.weight"] = at::rand({5, 8});
  for (const bool strict : {true, false})
    EXPECT_THAT(
        refused(flat(good_, {{"weights_strict", strict}})),
        AllOf(HasSubstr(path_), HasSubstr("'2.weight' is [5, 8], the model's is [3, 8]; weights_ignore = "
                                          "[\"2.weight\"] leaves it as it is initialised")));
  for (const char* pattern : {"2", "2.*", "*.weight"}) {
    const Loaded loaded(flat(good_, {{"weights_ignore", texts({pattern})}}), kFlat);
    EXPECT_TRUE(loaded["0.bias"].equal(good_["0.bias"])) << pattern;
    EXPECT_EQ(loaded["2.weight"].sizes(), at::IntArrayRef({3, 8})) << pattern;
  }
}

TEST_F(WeightsByName, IgnoredTensorsAreNotedAndIdlePatternsToo) {
  good_["extra.a"] = at::ones({1});
  const Loaded loaded(flat(good_, {{"weights_ignore", texts({"2", "extra", "nothing"})}}), kFlat);
  EXPECT_EQ(loaded.weights_note, path_ +
                                     ": not read, so as initialised: '2.weight', '2.bias'; 'nothing' of "
                                     "weights_ignore or weights_rename fits no name");
}

TEST_F(WeightsByName, NamesAreRenamedByPattern) {
  Tensors renamed;
  for (const auto& [name, tensor] : good_) renamed["net." + name] = tensor;
  renamed["head.weight"] = renamed.extract("net.2.weight").mapped();
  renamed["head.bias"] = renamed.extract("net.2.bias").mapped();
  const Setting::Value renames =
      section_with({{"head.*", std::string("2.*")}, {"net.*", std::string("*")}}).value;
  const Loaded loaded(flat(renamed, {{"weights_rename", renames}}), kFlat);
  for (const auto& [name, tensor] : good_) EXPECT_TRUE(loaded[name].equal(tensor)) << name;
}

TEST_F(WeightsByName, TwoNamesOfOneTensorAreRefused) {
  good_["module.0.bias"] = at::rand({8});
  EXPECT_THAT(refused(flat(good_)),
              HasSubstr("it holds both '0.bias' and 'module.0.bias', which are names of"));
  const Loaded loaded(flat(good_, {{"weights_ignore", texts({"module.0.bias"})}}), kFlat);
  EXPECT_TRUE(loaded["0.bias"].equal(good_["0.bias"]));
}

class ProjectionWeights : public WeightsByName {
 protected:
  ProjectionWeights() {
    Keys keys = gpt({});
    keys.pop_back();
    tensors_ = all_of(Loaded(keys, kText));
    for (auto& [name, tensor] : tensors_) tensor.uniform_();
    linear_ = tensors_;
    for (const char* name : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
      at::Tensor& weight = linear_.at("transformer.h.0." + std::string(name) + ".weight");
      weight = weight.t().contiguous();
    }
  }
  Tensors tensors_, linear_;
};

TEST_F(ProjectionWeights, MayBeThoseOfLinearLayers) {
  for (const Share& share : {Share{}, Share{3, 1}}) {
    const Loaded plain(gpt(tensors_), kText, share), turned(gpt(linear_), kText, share);
    for (const auto& [name, tensor] : tensors_) EXPECT_TRUE(turned[name].equal(plain[name])) << name;
  }
}

TEST_F(ProjectionWeights, OfOneFileAreAllOfOneKind) {
  linear_["transformer.h.0.mlp.c_fc.weight"] = tensors_.at("transformer.h.0.mlp.c_fc.weight");
  EXPECT_THAT(refused(gpt(linear_), kText), HasSubstr("c_fc.weight' is [16, 4], the model's is [4, 16]"));
}

TEST_F(ProjectionWeights, OutputsThatTheModelTiesMustBeTied) {
  tensors_["lm_head.weight"] = tensors_.at("transformer.wte.weight").clone();
  EXPECT_EQ(Loaded(gpt(tensors_), kText).weights_note, "");
  tensors_["lm_head.weight"][3][2] += 1;
  EXPECT_THAT(refused(gpt(tensors_), kText),
              HasSubstr("'lm_head.weight' is not 'transformer.wte.weight', to which the model ties it"));
  tensors_.erase("transformer.wte.weight");
  EXPECT_TRUE(Loaded(gpt(tensors_), kText)["transformer.wte.weight"].equal(tensors_["lm_head.weight"]));
}

}  // namespace
}  // namespace tutti
