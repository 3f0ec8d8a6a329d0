#include "models/layers/layer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"

namespace {
thread_local bool memory_is_short = false;
}

// All of this program, so that a test can say that there is no more memory.
void* operator new(std::size_t bytes) {
  void* data = memory_is_short ? nullptr : std::malloc(bytes);
  if (!data) throw std::bad_alloc();
  return data;
}
// AddressSanitizer's does not call the one above.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memory_is_short ? nullptr : std::malloc(bytes);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace tutti {
namespace {

using Layers = std::vector<std::shared_ptr<Layer>>;

std::shared_ptr<Sequential> nested() {
  return std::make_shared<Sequential>(Layers{
      std::make_shared<Linear>(3, 4),
      std::make_shared<Sequential>(Layers{std::make_shared<ReLU>(), std::make_shared<Linear>(4, 2, false)})});
}

std::vector<std::string> parameter_names(Layer& root) {
  std::vector<std::string> names;
  for (const NamedParameter& named : parameters(root)) names.push_back(named.name);
  return names;
}

// A layer that scales what another one gives.
class Scaled final : public Layer {
 public:
  explicit Scaled(std::shared_ptr<Layer> inner)
      : scale_(add_parameter("scale", {}, constant_init(2.0))), inner_(add_slot("inner", std::move(inner))) {}
  TensorTree forward(const TensorTree& input) override { return inner_(input).tensor() * scale_.tensor; }
  const char* kind() const override { return "Scaled"; }

 private:
  Parameter& scale_;
  Slot& inner_;
};

std::shared_ptr<Layer> scaled_linear(const NamedSlot& named) {
  if (std::string(named.slot->layer().kind()) != "Linear") return nullptr;
  return std::make_shared<Scaled>(named.slot->share());
}

TEST(Layer, ParametersAreNamedByPathInOrderOfRegistration) {
  EXPECT_THAT(parameter_names(*nested()), testing::ElementsAre("0.weight", "0.bias", "1.1.weight"));
}

TEST(Layer, WalkNamesEverySlotAndLayer) {
  const auto root = nested();
  std::vector<std::string> names;
  for (const NamedSlot& named : slots(*root)) names.push_back(named.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("0", "1", "1.0", "1.1"));
  EXPECT_EQ(layers(*root).front(), (std::pair<std::string, Layer*>("", root.get())));
  EXPECT_EQ(layers(*root).size(), 5U);
}

TEST(Layer, ALayerInTwoSlotsIsVisitedOnce) {
  const auto shared = std::make_shared<Linear>(3, 3);
  Sequential root(Layers{shared, shared});
  EXPECT_THAT(parameter_names(root), testing::ElementsAre("0.weight", "0.bias"));
}

TEST(Layer, IsBuiltOnTheMetaDevice) {
  for (const NamedParameter& named : parameters(*nested())) EXPECT_TRUE(named.parameter->tensor.is_meta());
}

TEST(Materialise, GivesLeavesThatRequireGradients) {
  const auto root = nested();
  materialise(*root, 3);
  for (const NamedParameter& named : parameters(*root)) {
    EXPECT_TRUE(named.parameter->tensor.is_cpu());
    EXPECT_TRUE(named.parameter->tensor.is_leaf() && named.parameter->tensor.requires_grad());
  }
}

TEST(Materialise, ValuesDependOnSeedAndNameOnly) {
  const auto small = std::make_shared<Sequential>(Layers{std::make_shared<Linear>(3, 4)});
  const auto large = nested();
  const auto other = nested();
  materialise(*small, 3);
  materialise(*large, 3);
  materialise(*other, 4);
  const at::Tensor& weight = parameters(*large)[0].parameter->tensor;
  EXPECT_TRUE(parameters(*small)[0].parameter->tensor.equal(weight));
  EXPECT_FALSE(parameters(*other)[0].parameter->tensor.equal(weight));
}

TEST(Materialise, LayersAlikeStartWithOtherValues) {
  Sequential root(Layers{std::make_shared<Linear>(3, 3), std::make_shared<Linear>(3, 3)});
  materialise(root, 3);
  const auto all = parameters(root);
  EXPECT_FALSE(all[0].parameter->tensor.equal(all[2].parameter->tensor));
}

TEST(Materialise, KeepsWhatHasValuesAlready) {
  const auto root = nested();
  materialise(*root, 3);
  const at::Tensor before = parameters(*root)[0].parameter->tensor;
  materialise(*root, 4);
  EXPECT_TRUE(parameters(*root)[0].parameter->tensor.is_same(before));
}

TEST(Materialise, KeepsStridesAndWithThemTheValues) {
  Conv2d last({.in_channels = 3, .out_channels = 4, .kernel_size = 3}), plain(last.options());
  last.weight().tensor = last.weight().tensor.contiguous(at::MemoryFormat::ChannelsLast);
  materialise(last, 3);
  materialise(plain, 3);
  EXPECT_TRUE(last.weight().tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_FALSE(last.weight().tensor.is_contiguous());
  EXPECT_TRUE(last.weight().tensor.equal(plain.weight().tensor));
}

std::map<std::string, at::Tensor> initial_values(Layer& root) {
  materialise(root, 3);
  std::map<std::string, at::Tensor> values;
  for (const NamedParameter& named : parameters(root)) values[named.name] = named.parameter->tensor;
  return values;
}

TEST(Materialise, GivesEachTensorTheValuesOfItsNameBeforeSurgery) {
  const auto plain = nested(), operated = nested();
  note_names(*operated);
  replace_layers(*operated, scaled_linear);
  const auto before = initial_values(*plain), after = initial_values(*operated);
  EXPECT_TRUE(before.at("0.weight").equal(after.at("0.inner.weight")));
  EXPECT_TRUE(before.at("1.1.weight").equal(after.at("1.1.inner.weight")));
  EXPECT_EQ(after.at("0.scale").item<float>(), 2.0F);
}

// Also if a new tensor is now called as an old one was.
TEST(Materialise, GivesNewTensorsValuesOfTheirOwn) {
  const auto moved = std::make_shared<Linear>(3, 3);
  Sequential before(Layers{moved}), plain(Layers{std::make_shared<Linear>(3, 3)});
  note_names(before);
  Sequential after(Layers{std::make_shared<Linear>(3, 3), moved});
  const auto values = initial_values(after);
  EXPECT_TRUE(initial_values(plain).at("0.weight").equal(values.at("1.weight")));
  EXPECT_FALSE(values.at("0.weight").equal(values.at("1.weight")));
}

TEST(NoteNames, KeepsNamesThatWereNotedEarlier) {
  const auto root = nested();
  note_names(*root);
  replace_layers(*root, scaled_linear);
  EXPECT_EQ(parameters(*root)[0].parameter->origin, "");
  note_names(*root);
  EXPECT_EQ(parameters(*root)[0].parameter->origin, "0.scale");
  EXPECT_EQ(parameters(*root)[1].parameter->origin, "0.weight");
}

TEST(Slot, HooksGoAroundTheLayerTheFirstOutermost) {
  const auto root = nested();
  materialise(*root, 1);
  Slot& slot = *root->slots()[1];
  std::string order;
  const Slot::Hook a = slot.before([&](const TensorTree&) { order += "a"; });
  Slot::Hook b = slot.around([&](const TensorTree& input, const Slot::Next& next) {
    order += "b(";
    const at::Tensor output = next(input).tensor();
    order += ")";
    return TensorTree(output * 0);
  });
  const Slot::Hook c = slot.after([&](const TensorTree&, TensorTree output) { return order += "c", output; });
  EXPECT_EQ(root->forward(at::ones({1, 3})).tensor().abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(order, "ab(c)");
  b.reset();
  EXPECT_NE(root->forward(at::ones({1, 3})).tensor().abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(order, "ab(c)ac");
}

TEST(Slot, AHookMayCallTheLayerTwiceOrNotAtAll) {
  const auto root = nested();
  materialise(*root, 1);
  Slot& slot = *root->slots()[1];
  const at::Tensor input = at::ones({1, 4});
  const at::Tensor once = slot(input);
  {
    const Slot::Hook twice = slot.around([](const TensorTree& given, const Slot::Next& next) {
      return TensorTree(next(given).tensor() + next(given).tensor());
    });
    EXPECT_TRUE(at::equal(slot(input), once * 2));
  }
  const Slot::Hook none = slot.around([](const TensorTree& given, const Slot::Next&) { return given; });
  EXPECT_TRUE(at::equal(slot(input), input));
}

TEST(Slot, RefilledCallsTheNewLayerInTheSamePass) {
  const auto root = nested();
  const ForwardContext evaluating{.training = false};
  set_context(*root, &evaluating);
  const auto old = root->slots()[1]->fill(std::make_shared<Dropout>(0.5));
  EXPECT_STREQ(old->kind(), "Sequential");
  EXPECT_FALSE(root->slots()[1]->layer().context().training);
}

TEST(ReplaceLayers, ReplacesEveryOneThatMatches) {
  const auto root = nested();
  const auto replaced = replace_layers(*root, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (std::string(named.slot->layer().kind()) != "ReLU") return nullptr;
    return std::make_shared<Tanh>();
  });
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_THAT(replaced[0].names, testing::ElementsAre("1.0"));
  EXPECT_STREQ(replaced[0].before->kind(), "ReLU");
  EXPECT_EQ(replaced[0].after.get(), layers(*root)[3].second);
  EXPECT_STREQ(slots(*root).back().slot->layer().kind(), "Linear");
  EXPECT_STREQ(layers(*root)[3].second->kind(), "Tanh");
}

TEST(ReplaceLayers, DoesNotLookIntoWhatItPut) {
  const auto root = nested();
  const auto replaced = replace_layers(*root, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (std::string(named.slot->layer().kind()) != "Linear") return nullptr;
    return std::make_shared<Sequential>(Layers{std::make_shared<Linear>(3, 3)});
  });
  EXPECT_EQ(replaced.size(), 2U);
}

TEST(ReplaceLayers, ReplacesALayerOfTwoSlotsOnce) {
  const auto shared = std::make_shared<Linear>(3, 3);
  Sequential root(Layers{shared, std::make_shared<Sequential>(Layers{shared}), shared});
  int asked = 0;
  const auto replaced = replace_layers(root, [&](const NamedSlot& named) {
    asked += &named.slot->layer() == shared.get() ? 1 : 0;
    return scaled_linear(named);
  });
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_THAT(replaced[0].names, testing::ElementsAre("0", "1.0", "2"));
  for (const NamedSlot& named : slots(root)) {
    const bool stood_there = testing::Value(named.name, testing::AnyOf("0", "1.0", "2"));
    EXPECT_EQ(&named.slot->layer() == replaced[0].after.get(), stood_there) << named.name;
  }
  EXPECT_THAT(parameter_names(root), testing::ElementsAre("0.scale", "0.inner.weight", "0.inner.bias"));
}

TEST(ReplaceLayers, AsksAboutALayerThatStaysOnce) {
  const auto shared = std::make_shared<Sequential>(Layers{std::make_shared<ReLU>()});
  Sequential root(Layers{shared, shared});
  std::vector<std::string> asked;
  replace_layers(root, [&](const NamedSlot& named) {
    asked.push_back(named.name);
    return std::shared_ptr<Layer>();
  });
  EXPECT_THAT(asked, testing::ElementsAre("0", "0.0"));
}

// As norms of low precision: the same numbers in another layer.
class Doubling final : public Layer {
 public:
  explicit Doubling(Linear& old)
      : weight_(adopt(old.weight(), "twice")), bias_(old.bias() ? &adopt(*old.bias()) : nullptr) {}
  TensorTree forward(const TensorTree& input) override {
    return at::linear(input.tensor(), weight_.tensor * 2, bias_ ? bias_->tensor : at::Tensor());
  }
  const char* kind() const override { return "Doubling"; }

 private:
  Parameter& weight_;
  Parameter* bias_;
};

TEST(Adopt, PassesParametersOnAndNothingDangles) {
  const auto root = nested();
  materialise(*root, 3);
  const auto before = parameters(*root);
  replace_layers(*root, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    auto* old = dynamic_cast<Linear*>(&named.slot->layer());
    return old ? std::make_shared<Doubling>(*old) : nullptr;
  });
  const auto after = parameters(*root);
  EXPECT_THAT(parameter_names(*root), testing::ElementsAre("0.twice", "0.bias", "1.1.twice"));
  for (std::size_t p = 0; p < before.size(); ++p) {
    EXPECT_EQ(before[p].parameter, after[p].parameter);
    EXPECT_TRUE(before[p].parameter->tensor.is_same(after[p].parameter->tensor));
  }
  root->forward(at::ones({1, 3})).tensor().sum().backward();
  EXPECT_TRUE(before[0].parameter->tensor.grad().defined());
}

TEST(Parameters, SharedByLayersAreListedOnce) {
  const auto first = std::make_shared<Linear>(3, 3);
  Sequential root(Layers{first, std::make_shared<Doubling>(*first)});
  EXPECT_THAT(parameter_names(root), testing::ElementsAre("0.twice", "0.bias"));
}

TEST(Parameters, FrozenParametersRequireNoGradient) {
  Linear layer(3, 3);
  layer.weight().trained = false;
  materialise(layer, 3);
  EXPECT_FALSE(layer.weight().tensor.requires_grad());
  EXPECT_TRUE(layer.bias()->tensor.requires_grad());
}

TEST(SetContext, NullRestoresTheDefault) {
  const auto root = nested();
  {
    const ForwardContext evaluating{.training = false};
    set_context(*root, &evaluating);
    EXPECT_FALSE(root->slots()[0]->layer().context().training);
    set_context(*root, nullptr);
  }
  EXPECT_TRUE(root->slots()[0]->layer().context().training);
}

TEST(Dropout, ActsInTrainingOnly) {
  Dropout dropout(0.5);
  const at::Tensor x = at::ones({1000});
  EXPECT_NEAR(dropout.forward(x).tensor().eq(0).sum().item<double>(), 500, 120);
  const ForwardContext evaluating{.training = false};
  set_context(dropout, &evaluating);
  EXPECT_TRUE(dropout.forward(x).tensor().equal(x));
}

TEST(EvaluationModeTest, EndsWithoutMemory) {
  const auto root = nested();
  const ForwardContext context;
  set_context(*root, &context);
  {
    const EvaluationMode evaluating(*root);
    for (const auto& [name, layer] : layers(*root)) EXPECT_FALSE(layer->context().training) << name;
    memory_is_short = true;
  }
  memory_is_short = false;
  for (const auto& [name, layer] : layers(*root)) EXPECT_EQ(&layer->context(), &context) << name;
}

ForwardContext of_sample(int64_t first) {
  return {.first_sample = first, .source = [](std::string_view name, int64_t place) {
            return make_draws(1, {name, 0, place});
          }};
}

TEST(ForwardContextTest, MasksGoByTheSampleAndTheCallForAnyNumberOfThreads) {
  ForwardContext all = of_sample(0), rest = of_sample(3);
  const at::Tensor whole = at::empty({7, 100, 300}), fewer = at::empty({4, 100, 300});
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const at::Tensor first = all.kept(whole, 0.7), second = all.kept(whole, 0.7);
  at::set_num_threads(1);
  EXPECT_NEAR(first.to(at::kFloat).mean().item<double>(), 0.7, 0.005);
  EXPECT_FALSE(first.equal(second));
  EXPECT_FALSE(first[0].equal(first[1]));
  EXPECT_TRUE(rest.kept(fewer, 0.7).equal(first.narrow(0, 3, 4)));
  EXPECT_TRUE(rest.kept(fewer, 0.7).equal(second.narrow(0, 3, 4)));
  rest.begin_pass(0);
  EXPECT_TRUE(rest.kept(whole, 0.7).equal(first));
  at::set_num_threads(threads);
}

TEST(Dropout, ScalesWhatItKeeps) {
  const ForwardContext context = of_sample(0);
  Dropout dropout(0.2);
  set_context(dropout, &context);
  at::Tensor x = at::ones({50, 100}, at::kFloat).requires_grad_();
  const at::Tensor y = dropout.forward(x).tensor();
  EXPECT_TRUE(y.eq(0).logical_or(y.eq(1.25f)).all().item<bool>());
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(y));
}

}  // namespace
}  // namespace tutti
