#include "training/trainee.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/formats/safetensors.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;
using Surgery = std::function<void(Layer& model)>;

const SampleSpec kImages{.shapes = {{"input", {2, 5, 5}}, {"target", {}}}, .classes = 3};

Setting recipe(const std::string& weights) {
  std::vector<std::pair<std::string, Setting::Value>> model{
      {"kind", std::string("sequential")},
      {"layers",
       list_value({std::string("Conv2d(2, 4, 3)"), std::string("Flatten()"), std::string("Linear(36, 3)")})}};
  if (!weights.empty()) model.emplace_back("weights", weights);
  return section_with({{"model", section_with(model).value}, {"optimizer", momentum_sgd().value}});
}

// Puts the linear layer into a slot of its own, beside a new parameter.
class Scaling final : public Layer {
 public:
  explicit Scaling(std::shared_ptr<Layer> inner)
      : scale_(add_parameter("scale", {3}, constant_init(2.0))),
        inner_(add_slot("inner", std::move(inner))) {}
  TensorTree forward(const TensorTree& input) override { return inner_(input).tensor() * scale_.tensor; }
  const char* kind() const override { return "Scaling"; }

 private:
  Parameter& scale_;
  Slot& inner_;
};

void scale(Layer& model) {
  replace_layers(model, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (named.slot->layer().kind() != std::string("Linear")) return nullptr;
    return std::make_shared<Scaling>(named.slot->share());
  });
}

// Takes over the parameters of the linear layer, the weight under another name.
class Renamed final : public Layer {
 public:
  explicit Renamed(Linear& old) : weight_(adopt(old.weight(), "matrix")), bias_(adopt(*old.bias())) {}
  TensorTree forward(const TensorTree& input) override {
    return at::linear(input.tensor(), weight_.tensor, bias_.tensor);
  }
  const char* kind() const override { return "Renamed"; }

 private:
  Parameter& weight_;
  Parameter& bias_;
};

void rename(Layer& model) {
  replace_layers(model, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    auto* old = dynamic_cast<Linear*>(&named.slot->layer());
    return old ? std::make_shared<Renamed>(*old) : nullptr;
  });
}

void narrow(Layer& model) { model.slots()[2]->fill(std::make_shared<Linear>(36, 2, false)); }

Batch batch() {
  return TensorTree::Children{{"input", at::ones({2, 2, 5, 5})}, {"target", at::tensor({0, 2}, at::kLong)}};
}

struct Trained : Trainee {
  explicit Trained(uint64_t seed, const Surgery& surgery = {}, const std::string& weights = "",
                   const Share& of = {}) {
    topology.share = of;
    build(*this, recipe(weights), kImages, seed, make_model, [&] {
      if (surgery) surgery(*model);
    });
  }
  void step() {
    model->loss(model->forward(batch()), batch()).backward();
    for (ParamView& view : views) view.grad = view.tensor.grad();
    optimizer->step();
    for (ParamView& view : views) view.tensor.mutable_grad() = at::Tensor();
  }
  void operate(const Surgery& surgery) {
    surgery(*model);
    follow_surgery(*this, 1);
  }
  at::Tensor operator[](const std::string& name) const {
    for (const SavedTensor& one : weights_of(*this))
      if (one.name == name) return one.tensor;
    ADD_FAILURE() << "no " << name;
    return {};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const ParamView& view : views) all.push_back(view.name);
    return all;
  }
  Tensors saved() const {
    Tensors tensors;
    for (const SavedTensor& one : saved_tensors(*this)) tensors[one.name] = one.tensor.clone();
    return tensors;
  }
};

TEST(Trainee, SurgeryLeavesTheInitialValuesOfAllOtherWeights) {
  const Trained plain(7), scaled(7, scale), renamed(7, rename);
  EXPECT_THAT(scaled.names(), ElementsAre("0.weight", "0.bias", "2.scale", "2.inner.weight", "2.inner.bias"));
  EXPECT_TRUE(scaled["0.weight"].equal(plain["0.weight"]));
  EXPECT_TRUE(scaled["2.inner.weight"].equal(plain["2.weight"]));
  EXPECT_TRUE(renamed["2.matrix"].equal(plain["2.weight"]));
}

class InitialWeightsTest : public testing::Test {
 protected:
  std::string file(const Tensors& tensors) {
    PosixDisk disk;
    write_safetensors(disk, path(), {tensors, {}});
    return path();
  }
  std::string path() const { return folder_.path("weights.safetensors"); }
  Tensors weights_of_all(const Trained& trained) {
    Tensors tensors;
    for (const SavedTensor& one : weights_of(trained)) tensors[one.name] = one.tensor;
    return tensors;
  }
  std::string refused(const Tensors& tensors, const Surgery& surgery) {
    file(tensors);
    return message_of<UserError>([&] { Trained(8, surgery, path()); });
  }

  Scratch folder_;
  Trained plain_{7};
};

TEST_F(InitialWeightsTest, OfThePlainModelLoadIntoTheOperatedOne) {
  const Trained scaled(8, scale, file(weights_of_all(plain_))), renamed(8, rename, path());
  EXPECT_TRUE(scaled["2.inner.weight"].equal(plain_["2.weight"]));
  EXPECT_TRUE(scaled["2.inner.bias"].equal(plain_["2.bias"]));
  EXPECT_TRUE(scaled["0.weight"].equal(plain_["0.weight"]));
  EXPECT_TRUE(scaled["2.scale"].equal(at::full({3}, 2.0F)));
  EXPECT_TRUE(renamed["2.matrix"].equal(plain_["2.weight"]));
}

TEST_F(InitialWeightsTest, OfTheOperatedModelLoadToo) {
  const Trained operated(7, scale);
  Tensors tensors = weights_of_all(operated);
  tensors["2.scale"] = at::full({3}, 5.0F);
  const Trained scaled(8, scale, file(tensors));
  EXPECT_TRUE(scaled["2.inner.weight"].equal(operated["2.inner.weight"]));
  EXPECT_TRUE(scaled["2.scale"].equal(at::full({3}, 5.0F)));
}

TEST_F(InitialWeightsTest, OfWhatSurgeryRemovedAreIgnored) {
  const Trained narrowed(7, narrow, file(weights_of_all(plain_))), fresh(7, narrow);
  EXPECT_TRUE(narrowed["0.weight"].equal(plain_["0.weight"]));
  EXPECT_TRUE(narrowed["2.weight"].equal(fresh["2.weight"]));
}

TEST_F(InitialWeightsTest, MistakesAreNamedByBothNames) {
  Tensors tensors = weights_of_all(plain_);
  tensors["other"] = at::ones({1});
  EXPECT_THAT(refused(tensors, scale), HasSubstr("it holds 'other', which the model does not have"));
  tensors.erase("other");
  tensors["2.inner.weight"] = tensors.at("2.weight");
  EXPECT_THAT(refused(tensors, scale), HasSubstr("it holds both '2.inner.weight' and '2.weight'"));
  tensors.erase("2.inner.weight");
  tensors.erase("2.weight");
  EXPECT_THAT(refused(tensors, scale),
              HasSubstr("it holds no tensor '2.inner.weight' ('2.weight' before surgery), which the model"));
  EXPECT_THAT(refused(tensors, {}), HasSubstr("it holds no tensor '2.weight', which the model has"));
  tensors["2.weight"] = at::ones({3, 35});
  EXPECT_THAT(refused(tensors, scale), HasSubstr("'2.weight' is [3, 35], the model's is [3, 36]"));
}

// A file of the operated model has all of its tensors.
TEST_F(InitialWeightsTest, OfTheOperatedModelAreComplete) {
  Tensors tensors = weights_of_all(Trained(7, [](Layer& model) {
    scale(model);
    model.slots()[1]->fill(std::make_shared<Scaling>(model.slots()[1]->share()));
  }));
  tensors.erase("2.scale");
  EXPECT_THAT(refused(tensors,
                      [](Layer& model) {
                        scale(model);
                        model.slots()[1]->fill(std::make_shared<Scaling>(model.slots()[1]->share()));
                      }),
              HasSubstr("it holds no tensor '2.scale', which the model has"));
}

TEST(RestoreTensors, ByTheNamesBeforeSurgeryOrAfter) {
  Trained plain(7), renamed(8, rename);
  plain.step();
  restore_tensors(renamed, MemoryTensors(plain.saved()), "old");
  EXPECT_TRUE(renamed["2.matrix"].equal(plain["2.weight"]));
  EXPECT_EQ(renamed.optimizer->steps(2), 1);
  EXPECT_TRUE(renamed.saved()
                  .at("optimizers/2.matrix/momentum_buffer")
                  .equal(plain.saved().at("optimizers/2.weight/momentum_buffer")));
  Trained again(9, rename);
  restore_tensors(again, MemoryTensors(renamed.saved()), "new");
  EXPECT_TRUE(again["2.matrix"].equal(plain["2.weight"]));
}

TEST(RestoreTensors, NamesBothNamesOfWhatIsMissing) {
  const Trained plain(7);
  Trained renamed(8, rename);
  Tensors tensors = plain.saved();
  tensors.erase("model/2.weight");
  const auto refused = [&](Trained& into) {
    return message_of<UserError>([&] { restore_tensors(into, MemoryTensors(tensors), "old"); });
  };
  EXPECT_THAT(
      refused(renamed),
      HasSubstr("old: there is no 'model/2.matrix' ('model/2.weight' before surgery), which the rec"));
  Trained scaled(8, scale);
  tensors = plain.saved();
  EXPECT_THAT(refused(scaled), HasSubstr("there is no 'model/2.scale', which the recipe needs"));
}

TEST(RestoreTensors, IgnoresWhatIsNamedByEitherName) {
  const Trained plain(7);
  Trained renamed(8, rename);
  const at::Tensor own = renamed["2.matrix"].clone();
  RestoreFilter filter;
  for (const char* name : {"model/2.weight", "model/2.matrix"}) {
    filter.ignored = [name](const std::string& other) { return other == name; };
    Tensors tensors = plain.saved();
    if (name != std::string("model/2.weight")) tensors.erase("model/2.weight");
    restore_tensors(renamed, MemoryTensors(tensors), "old", filter);
    EXPECT_TRUE(renamed["2.matrix"].equal(own)) << name;
  }
}

TEST(FollowSurgery, KeepsTheStateOfParametersThatStay) {
  Trained operated(7), plain(7);
  operated.step();
  plain.step();
  const auto kept = operated.saved();
  operated.operate(scale);
  EXPECT_EQ(operated.surgeries, 1);
  EXPECT_THAT(operated.names(),
              ElementsAre("0.weight", "0.bias", "2.scale", "2.inner.weight", "2.inner.bias"));
  EXPECT_TRUE(operated["2.inner.weight"].equal(plain["2.weight"]));
  const auto state = operated.saved();
  EXPECT_TRUE(state.at("optimizers/2.inner.weight/momentum_buffer")
                  .equal(kept.at("optimizers/2.weight/momentum_buffer")));
  EXPECT_EQ(state.at("optimizers/2.inner.weight/step").item<int64_t>(), 1);
  EXPECT_EQ(state.at("optimizers/2.scale/step").item<int64_t>(), 0);
  EXPECT_EQ(state.count("optimizers/2.weight/step"), 0U);
  operated.step();
  EXPECT_FALSE(operated["2.scale"].equal(at::full({3}, 2.0F)));
}

// As layer norms of low precision: nothing changes but the formula.
TEST(FollowSurgery, AdoptedParametersStay) {
  Trained operated(7), plain(7);
  const Surgery same = [](Layer& model) {
    class Same final : public Layer {
     public:
      explicit Same(const Layer& old)
          : weight_(adopt(*old.own_parameters()[0])), bias_(adopt(*old.own_parameters()[1])) {}
      TensorTree forward(const TensorTree& input) override {
        return at::linear(input.tensor(), weight_.tensor, bias_.tensor);
      }
      const char* kind() const override { return "Same"; }

     private:
      Parameter& weight_;
      Parameter& bias_;
    };
    Slot& slot = *model.slots()[2];
    slot.fill(std::make_shared<Same>(slot.layer()));
  };
  operated.step();
  plain.step();
  same(*operated.model);  // without following
  operated.step();
  plain.step();
  EXPECT_TRUE(operated["2.weight"].equal(plain["2.weight"]));
  operated.operate(same);
  EXPECT_EQ(operated.surgeries, 0);
  operated.step();
  plain.step();
  EXPECT_TRUE(operated["2.weight"].equal(plain["2.weight"]));
  EXPECT_EQ(operated.optimizer->steps(2), 3);
}

TEST(FollowSurgery, DropsWhatIsGone) {
  Trained operated(7);
  operated.step();
  operated.operate(narrow);
  EXPECT_THAT(operated.names(), ElementsAre("0.weight", "0.bias", "2.weight"));
  EXPECT_EQ(operated.optimizer->steps(0), 1);
  EXPECT_EQ(operated.optimizer->steps(2), 0);
  EXPECT_TRUE(operated["2.weight"].equal(Trained(1, narrow)["2.weight"]));
}

TEST(FollowSurgery, FrozenParametersStayFrozen) {
  Trained operated(7);
  operated.views[0].tensor.set_requires_grad(false);
  operated.operate(scale);
  EXPECT_FALSE(operated.views[0].tensor.requires_grad());
  EXPECT_TRUE(operated.views[2].tensor.requires_grad());
}

TEST(FollowSurgery, NewTensorsHaveTheRunsPrecision) {
  Trained operated(7);
  operated.precision.param_dtype = at::kBFloat16;
  operated.operate(scale);
  EXPECT_EQ(operated["2.scale"].scalar_type(), at::kBFloat16);
}

TEST(FollowSurgery, TheLayoutMayChange) {
  Trained operated(7), plain(7);
  operated.step();
  plain.step();
  operated.operate([](Layer& model) {
    at::Tensor& weight = dynamic_cast<Conv2d&>(model.slots()[0]->layer()).weight().tensor;
    weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
  });
  operated.step();
  plain.step();
  EXPECT_TRUE(operated["0.weight"].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::allclose(operated["0.weight"], plain["0.weight"], 1e-4, 1e-5));
}

TEST(Trainee, SavesParametersThatAreNotTrainedWithoutState) {
  Trained frozen(
      7, [](Layer& model) { dynamic_cast<Linear&>(model.slots()[2]->layer()).weight().trained = false; });
  frozen.step();
  EXPECT_EQ(frozen.saved().count("model/2.weight"), 1U);
  EXPECT_EQ(frozen.saved().count("optimizers/2.weight/step"), 0U);
  EXPECT_EQ(frozen.saved().count("optimizers/2.bias/step"), 1U);
  EXPECT_TRUE(frozen["2.weight"].equal(Trained(7)["2.weight"]));
}

// Builds the trainee with [model] freeze, and surgery before training.
struct Frozen : Trainee {
  explicit Frozen(std::vector<Setting::Value> patterns, const Surgery& operate = {}) {
    Setting::Table model = recipe("").at("model").table();
    model.emplace_back("freeze", Setting(list_value(patterns), "model.freeze", {"test.toml", 1}));
    const Setting with = section_with({{"model", model}, {"optimizer", momentum_sgd().value}});
    build(*this, with, kImages, 7, make_model, [&] {
      if (operate) operate(*this->model);
    });
  }
  std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (const ParamView& view : views)
      if (view.trained) names.push_back(view.name);
    return names;
  }
};

TEST(Trainee, FreezesParametersByName) {
  Frozen frozen({std::string("0.*"), std::string("*.bias")});
  EXPECT_THAT(frozen.trained(), ElementsAre("2.weight"));
  for (const ParamView& view : frozen.views)
    EXPECT_EQ(view.tensor.requires_grad(), view.trained) << view.name;
  for (const OptimizerState& one : frozen.optimizer->state()) EXPECT_EQ(one.view->name, "2.weight");
}

// Adopted parameters stay frozen, new ones are trained.
TEST(Trainee, FreezesWhatItHasBeforeSurgery) {
  EXPECT_THAT(Frozen({std::string("2.*")}, scale).trained(), ElementsAre("0.weight", "0.bias", "2.scale"));
  EXPECT_THAT(Frozen({std::string("2.weight")}, rename).trained(),
              ElementsAre("0.weight", "0.bias", "2.bias"));
}

TEST(Trainee, MayFreezeAllThatSurgeryAddsTo) {
  EXPECT_THAT(Frozen({std::string("*")}, scale).trained(), ElementsAre("2.scale"));
}

TEST(Trainee, FreezesNothingThatItHasNotAndNotAll) {
  EXPECT_THAT(
      [] {
        Frozen({std::string("0.*"), std::string("3.*")});
      },
      testing::ThrowsMessage<UserError>(HasSubstr("no parameter matches 3.*")));
  EXPECT_THAT([] { Frozen({std::string("*")}); },
              testing::ThrowsMessage<UserError>(HasSubstr("no parameter is left to train")));
}

// The union of the ranks' pieces; asserts that no two have the same row.
Tensors joined(const std::vector<std::vector<CheckpointPiece>>& ranks) {
  Tensors whole;
  std::map<std::string, int64_t> rows;
  for (const auto& pieces : ranks)
    for (const CheckpointPiece& piece : pieces) {
      at::Tensor& to = whole[piece.name];
      if (!to.defined()) to = at::zeros(piece.shape, piece.dtype);
      (to.dim() == 0 ? to : to.narrow(0, piece.offset[0], piece.extent[0])).copy_(piece.tensor);
      rows[piece.name] += to.dim() == 0 ? 1 : piece.extent[0];
    }
  for (const auto& [name, tensor] : whole) EXPECT_EQ(rows[name], tensor.dim() == 0 ? 1 : tensor.size(0));
  return whole;
}

void expect_equal(const Tensors& found, const Tensors& wanted) {
  EXPECT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) EXPECT_TRUE(found.at(name).equal(tensor)) << name;
}

TEST(SharedTrainee, HasItsRowsOfWhatAWholeOneSaves) {
  Trained whole(7);
  whole.step();
  std::vector<std::vector<CheckpointPiece>> pieces, of_whole;
  for (int rank = 0; rank < 5; ++rank) {
    Trained shared(8, {}, "", {5, rank});
    restore_tensors(shared, MemoryTensors(whole.saved()), "whole");
    pieces.push_back(checkpoint_pieces(shared));
    for (CheckpointPiece& piece : pieces.back()) piece.tensor = piece.tensor.clone();
    whole.topology.share = {.replicas = 5, .replica = rank};
    of_whole.push_back(checkpoint_pieces(whole));
  }
  expect_equal(joined(pieces), whole.saved());
  expect_equal(joined(of_whole), whole.saved());
  EXPECT_EQ(pieces[4].size(), 0U) << "the largest tensor has four rows";
}

// An average of weights is saved as they are, and restored on another number of ranks.
TEST(SharedTrainee, SavesWhatListenersHaveOfItsRows) {
  const at::Tensor average = at::randn({3, 36}), whole = at::randn({7});
  std::vector<std::vector<CheckpointPiece>> pieces;
  const auto listen = [](Trained& trainee, const at::Tensor& rows, const at::Tensor& all) {
    trainee.listeners = {{"algorithms/EMA/2.weight", rows}, {"algorithms/EMA/mean", all}};
  };
  for (int rank = 0; rank < 2; ++rank) {
    Trained shared(7, {}, "", {2, rank});
    const ParamView& view = shared.views[2];
    ASSERT_EQ(view.name, "2.weight");
    listen(shared, narrowed(average, view.region), whole);
    pieces.push_back(checkpoint_pieces(shared));
    for (CheckpointPiece& piece : pieces.back()) piece.tensor = piece.tensor.clone();
  }
  const Tensors saved = joined(pieces);
  EXPECT_TRUE(saved.at("algorithms/EMA/2.weight").equal(average));
  EXPECT_TRUE(saved.at("algorithms/EMA/mean").equal(whole));
  Trained third(8, {}, "", {3, 1});
  const ParamView& view = third.views[2];
  listen(third, at::zeros({view.region.extent[0], 36}), at::zeros({7}));
  restore_tensors(third, MemoryTensors(saved), "two ranks");
  EXPECT_TRUE(third.listeners[0].second.equal(narrowed(average, view.region)));
  EXPECT_TRUE(third.listeners[1].second.equal(whole));
}

// As a plugin's may be.
struct Unreduced final : Model {
  TensorTree forward(const Batch& batch) override { return batch["input"]; }
  at::Tensor loss(const Outputs&, const Batch&) override { return at::ones({2}); }
  const char* kind() const override { return "Unreduced"; }
};

TEST(Trainee, RefusesALossThatIsNotOneNumber) {
  Trainee trainee;
  trainee.model = std::make_shared<Unreduced>();
  EXPECT_THAT(message_of<UserError>([&] { trainee.loss_of(at::ones({2}), batch()); }),
              HasSubstr("the loss of Unreduced has the shape [2]; expected one number"));
}

TEST(SharedTrainee, UpdatesItsRowsAsAWholeOneDoes) {
  Trained whole(7), shared(7, {}, "", {2, 1});
  whole.step();
  for (std::size_t p = 0; p < shared.views.size(); ++p) {
    shared.views[p].grad = narrowed(whole.views[p].grad, shared.views[p].region);
  }
  shared.optimizer->step();
  for (std::size_t p = 0; p < shared.views.size(); ++p) {
    const ParamView& view = shared.views[p];
    EXPECT_TRUE(view.tensor.equal(narrowed(whole.views[p].tensor, view.region)));
  }
}

TEST(SharedTrainee, KeepsItsRowsThroughSurgeryElsewhere) {
  Trained shared(7, {}, "", {2, 0});
  const at::Tensor rows = shared.views[0].tensor;
  const at::NoGradGuard no_grad;
  rows.add_(1);
  shared.operate(scale);
  EXPECT_TRUE(shared.views[0].tensor.is_same(rows));
  EXPECT_EQ(shared.views.back().region.extent, Shape{2}) << "the new scale has three rows";
}

}  // namespace
}  // namespace tutti
