#include "data/readers/options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "data/readers/shared_keys.h"

namespace tutti {
namespace {

constexpr double kMostSamples = 1e15, kMostHeldOut = 1e15;
constexpr double kMostShuffled = 1e9;
constexpr double kMostCacheMb = 1e9;

template <class Options>
std::vector<Bound<Options>> stream_keys(const char* what) {
  return {option<Options>("command", &Options::command,
                          std::string("in place of path: the command line that writes ") + what +
                              ", run by sh on each rank, and again when it has ended")
              .may_be_absent(),
          option<Options>("epoch_samples", &Options::epoch_samples,
                          "with command: samples of an epoch; the next one continues in the output. When "
                          "absent, the command is run once to count them")
              .may_be_absent()
              .at_least(1)
              .at_most(kMostSamples),
          option<Options>("shuffle_buffer", &Options::shuffle_buffer,
                          "with command: shuffle draws an order of so many neighbouring samples, which are "
                          "kept in memory")
              .at_least(1)
              .at_most(kMostShuffled)};
}

template <class Options>
Bound<Options> arrays_option(const std::string& of) {
  return option("arrays", &Options::arrays,
                "the arrays to read: a list of names, or a table with a model's names for yours, { input = "
                "\"images\", target = \"labels\" }; default: all of " +
                    of)
      .as(KeyType::kTextsOrNamedTexts);
}

template <class Options>
Bound<Options> train_or_test() {
  return option<Options>("split", &Options::test, "the files to train on, or those to test on",
                         {{"train", false}, {"test", true}});
}

template <class Options>
std::vector<Bound<Options>> sequence_keys() {
  return {option<Options>("sequence_length", &Options::sequence_length, "tokens of a sample")
              .also_named({"max_sequence_length", "max_seq_len"})
              .at_least(1)
              .at_most(kMaxSampleSize),
          option<Options>(
              "split", &Options::split, "the part of the file; its last eval_fraction is for evaluation",
              {{"all", TokenSplit::kAll}, {"train", TokenSplit::kTrain}, {"eval", TokenSplit::kEval}}),
          option<Options>("eval_fraction", &Options::eval_fraction, "the fraction of the file for evaluation")
              .more_than(0)
              .less_than(1)};
}

template <class Options>
std::vector<Bound<Options>> image_file_keys() {
  return with_keys<Options>(
      {option<Options>("classes", &Options::classes, "names of the classes, in the order of their numbers")
           .may_be_absent(),
       option<Options>("classes_from", &Options::classes_from,
                       "where these names are: a folder of class folders, such as the one trained on, or a "
                       "file with a name a line")
           .as(KeyType::kPath)
           .may_be_absent(),
       classes_option<Options>("targets are below; default: from the data")},
      image_read_keys<Options>());
}

}  // namespace

Kind<Hdf5Options> Hdf5Options::kind() {
  using Options = Hdf5Options;
  return {
      "hdf5",
      "Arrays of an HDF5 file, side by side: row i of each is sample i.",
      {path_option<Options>("the file"), option("group", &Options::group, "the group that holds the arrays"),
       arrays_option<Options>("the group"),
       option("cache_mb", &Options::cache_mb,
              "memory of each process for arrays in chunks (compressed ones), which are decoded once and "
              "kept; what does not fit is decoded again and again")
           .at_least(0)
           .at_most(kMostCacheMb),
       classes_option<Options>("integer targets are below; default: from the data")}};
}

Kind<NumpyOptions> NumpyOptions::kind() {
  return {"numpy",
          "Arrays that numpy saved, side by side: row i of each is sample i.",
          {path_option<NumpyOptions>("an .npz file, or a folder of .npy files"),
           arrays_option<NumpyOptions>("the file or folder"),
           classes_option<NumpyOptions>("integer targets are below; default: from the data")}};
}

Kind<BytesOptions> BytesOptions::kind() {
  return {"bytes",
          "A text file as tokens of one byte, for a language model; a sample's target is the next byte.",
          with_keys<BytesOptions>({path_option<BytesOptions>("the file")}, sequence_keys<BytesOptions>())};
}

Kind<TextOptions> TextOptions::kind() {
  using Options = TextOptions;
  return {
      "text",
      "Texts and a tokenizer, for a language model: JSON lines (.jsonl), or a document a file. They become "
      "tokens once, which are kept.",
      with_keys<Options>(
          {path_option<Options>("a file, or several: \"texts/*.jsonl\"; or give command").may_be_absent(),
           option("tokenizer", &Options::tokenizer,
                  "Hugging Face's tokenizer.json, the folder that has it, or its name in the cache on this "
                  "machine")
               .as(KeyType::kPath)
               .required(),
           option("lines", &Options::json_lines, "with command: each line is a JSON object, or a text",
                  {{"json", true}, {"text", false}}),
           option("text_field", &Options::text_field, "the member of a line that is the text; a.b is b in a"),
           option(
               "prompt_field", &Options::prompt_field,
               "with response_field: the text of a line is both, and the prompt does not count in the loss; "
               "of several, [\"instruction\", \"input\"], each that is not empty is a line of the prompt")
               .as(KeyType::kTextOrTexts)
               .may_be_absent(),
           option("response_field", &Options::response_field, "see prompt_field").may_be_absent(),
           option("messages_field", &Options::messages_field,
                  "a list of messages with role and content; only those of the assistant count in the loss")
               .may_be_absent(),
           option(
               "chosen_field", &Options::chosen_field,
               "for [[algorithms]] dpo, with rejected_field: the better of two answers to prompt_field, or "
               "without prompt_field two lists of messages; a sample has both answers, each with its "
               "prompt, and pairs that do not fit into sequence_length are left out")
               .may_be_absent(),
           option("rejected_field", &Options::rejected_field, "the worse answer: see chosen_field")
               .may_be_absent(),
           option("turn", &Options::turn,
                  "how a message is written, with {role} and {content}; default: as the tokenizer's chat "
                  "template says, and without one \"<|im_start|>{role}\\n{content}<|im_end|>\\n\"")
               .may_be_absent(),
           option("packing", &Options::packing,
                  "cut: one document behind the other, cut into samples; first_fit: whole documents beside "
                  "each other in a sample, which do not see each other",
                  {{"cut", TextPackingKind::kCut}, {"first_fit", TextPackingKind::kFirstFit}}),
           option("add_bos_token", &Options::add_bos_token, "a token before each document"),
           option(
               "add_eos_token", &Options::add_eos_token,
               "a token behind each document; default: true, and false where the tokenizer's chat template "
               "writes it")
               .may_be_absent(),
           option("bos_token", &Options::bos_token, "default: as tokenizer_config.json says").may_be_absent(),
           option("eos_token", &Options::eos_token, "default: as tokenizer_config.json says").may_be_absent(),
           option("on_bad_sample", &Options::skip_bad, "a line that is no such JSON",
                  {{"error", false}, {"skip", true}}),
           option("cache", &Options::cache,
                  "the folder that keeps tokens; default: $XDG_CACHE_HOME/tutti/tokens, or in ~/.cache")
               .as(KeyType::kPath)
               .may_be_absent()},
          with_keys<Options>(stream_keys<Options>("the texts"), sequence_keys<Options>()))};
}

Kind<TokensOptions> TokensOptions::kind() {
  using Options = TokensOptions;
  return {
      "tokens",
      "A file of tokens, for a language model: plain integers (nanoGPT's), numpy's .npy, llm.c's .bin, "
      "or Megatron-LM's .idx and .bin.",
      with_keys<Options>(
          {path_option<Options>("the file"),
           option("dtype", &Options::dtype,
                  "the type of a token; auto: what the file's header says, else what its numbers look like",
                  {{"auto", std::nullopt},
                   {"uint16", TokenFormat::kUint16},
                   {"int32", TokenFormat::kInt32},
                   {"uint32", TokenFormat::kUint32},
                   {"int64", TokenFormat::kInt64}}),
           option("vocab_size", &Options::vocab_size, "tokens are below; default: from the data")
               .may_be_absent()
               .at_least(1)
               .at_most(kMaxSampleSize)},
          sequence_keys<Options>())};
}

Kind<SyntheticOptions> SyntheticOptions::kind() {
  using Options = SyntheticOptions;
  return {"synthetic",
          "Random samples drawn from the seed, for benchmarks.",
          {option("samples", &Options::samples, "of an epoch").at_least(1).at_most(kMostSamples),
           option("shape", &Options::shape, "of one sample").at_least(1).at_most(kMaxSampleSize),
           option("targets", &Options::targets,
                  "a class for each sample, or the next token for each of a sequence",
                  {{"class", SyntheticTargets::kClass}, {"sequence", SyntheticTargets::kSequence}}),
           option("classes", &Options::classes, "targets are below (targets = \"class\")")
               .at_least(1)
               .at_most(kMaxSampleSize),
           option("vocab", &Options::vocab, "tokens are below (targets = \"sequence\")")
               .also_named({"vocab_size"})
               .at_least(1)
               .at_most(kMaxSampleSize)}};
}

Kind<Cifar10Options> Cifar10Options::kind() {
  return {
      "cifar10",
      "CIFAR-10's binary version: images uint8 [32, 32, 3]; plain or gzip.",
      {path_option<Cifar10Options>("the folder with data_batch_1.bin to test_batch.bin, or one such file"),
       train_or_test<Cifar10Options>()}};
}

Kind<Cifar100Options> Cifar100Options::kind() {
  using Options = Cifar100Options;
  return {"cifar100",
          "CIFAR-100's binary version: images uint8 [32, 32, 3]; plain or gzip.",
          {path_option<Options>("the folder with train.bin and test.bin, or one such file"),
           train_or_test<Options>(),
           option("labels", &Options::coarse, "the 100 classes, or the 20 superclasses",
                  {{"fine", false}, {"coarse", true}})}};
}

Kind<MnistOptions> MnistOptions::kind() {
  return {"mnist",
          "MNIST, or a dataset in files of the same names: images uint8 [28, 28, 1]; plain or gzip.",
          {path_option<MnistOptions>("the folder with train-images-idx3-ubyte and the others"),
           train_or_test<MnistOptions>()}};
}

Kind<IdxOptions> IdxOptions::kind() {
  using Options = IdxOptions;
  return {"idx",
          "Images and labels in two IDX files, the format of MNIST, of unsigned bytes; plain or gzip.",
          {option("images", &Options::images, "the file of images [samples, height, width], or with channels")
               .as(KeyType::kPath)
               .required(),
           option("labels", &Options::labels, "the file of labels [samples]").as(KeyType::kPath).required(),
           classes_option<Options>("labels are below; default: from the data")}};
}

Kind<ImageFolderOptions> ImageFolderOptions::kind() {
  using Options = ImageFolderOptions;
  return {
      "image_folder",
      "JPEG, PNG, WebP, BMP, GIF, TIFF and PPM files, RGB as Pillow's: images uint8 [height, width, 3] of "
      "their own sizes. "
      "Folders are classes, sorted by name, as in torchvision's ImageFolder.",
      with_keys<Options>(
          {path_option<Options>("the folder of class folders, or that of the files in the list"),
           option("list", &Options::list,
                  "a file with a line for each image: its path, a tab or space, and its class, a name or a "
                  "number")
               .as(KeyType::kPath)
               .may_be_absent(),
           option("masks", &Options::masks,
                  "the folder of masks of the same names, but for the ending: the values of their pixels, "
                  "gray or of a palette, are the targets, and the folders of `path` are no classes")
               .as(KeyType::kPath)
               .may_be_absent(),
           mask_values_option<Options>()},
          image_file_keys<Options>())};
}

Kind<WebDatasetOptions> WebDatasetOptions::kind() {
  using Options = WebDatasetOptions;
  return {"webdataset",
          "Tar files as WebDataset writes them: members with one base name are a sample, of an image (.jpg, "
          ".jpeg, .png, ...) and its class (.cls, or a field of .json). Images as image_folder's.",
          with_keys<Options>(
              {path_option<Options>(
                   "the tar file, or several: train-{000..012}.tar, train-*.tar, a folder; or give command")
                   .may_be_absent(),
               option("label_key", &Options::label_key, "the field of .json that is the class")},
              with_keys<Options>(stream_keys<Options>("a tar file, or several one behind the other"),
                                 image_file_keys<Options>()))};
}

Kind<MdsOptions> MdsOptions::kind() {
  using Options = MdsOptions;
  return {
      "mds",
      "Datasets of MosaicML Streaming (index.json and shards .mds, plain or compressed by zstd or gzip), "
      "local or fetched by a command while the run reads. Images as image_folder's.",
      with_keys<Options>(
          {path_option<Options>("the folder with index.json; with remote, the folder for what is fetched"),
           option("remote", &Options::remote,
                  "where the dataset is, as your command names it: s3://bucket/folder")
               .may_be_absent(),
           option("fetch", &Options::fetch,
                  "the command line that copies a file of it: \"aws s3 cp {source} {target}\"; default: of "
                  "[remote]")
               .may_be_absent(),
           option("cache_mb", &Options::cache_mb,
                  "shards that are kept in path, of those that can be fetched or uncompressed anew: the ones "
                  "used last, and all in use; default: all")
               .more_than(0)
               .at_most(kMostCacheMb),
           option(
               "columns", &Options::columns,
               "the columns to read: a list of names, or a table with a model's names for yours, { input = "
               "\"image\", target = \"label\" }; default: all")
               .as(KeyType::kTextsOrNamedTexts),
           option("dtype", &Options::dtype,
                  "of the numbers in columns of bytes that are no image files, as tokens often are",
                  {{"int64", MdsNumber::kInt64},
                   {"uint8", MdsNumber::kUint8},
                   {"int8", MdsNumber::kInt8},
                   {"uint16", MdsNumber::kUint16},
                   {"int16", MdsNumber::kInt16},
                   {"uint32", MdsNumber::kUint32},
                   {"int32", MdsNumber::kInt32},
                   {"uint64", MdsNumber::kUint64},
                   {"float16", MdsNumber::kFloat16},
                   {"float32", MdsNumber::kFloat32},
                   {"float64", MdsNumber::kFloat64}}),
           option("shuffle_block", &Options::shuffle_block,
                  "samples that are shuffled among each other, of whole shards in an order drawn for each "
                  "epoch; so few shards are needed at a time")
               .at_least(1)
               .at_most(kMostSamples)},
          image_file_keys<Options>())};
}

Catalog source_catalog() {
  return {
      .section = "data.train.sources",
      .noun = "dataset",
      .doc = "One of the datasets of a mixture.",
      .keys = {Key{"weight", KeyType::kNumber, "none", "its part of the samples, beside the others' weights"}
                   .more_than(0),
               Key{"tokens", KeyType::kInteger, "none",
                   "its tokens in an epoch; of kinds with sequence_length"}
                   .at_least(1)},
      .entries = SourceKinds::entries(),
      .alternatives = {{{"weight", "tokens"}}}};
}

Kind<MixtureOptions> MixtureOptions::kind() {
  using Options = MixtureOptions;
  return {
      "mixture",
      "Several datasets with the same arrays: each gives a number of samples to an epoch, by its weight or "
      "its tokens, or all that it has.",
      {Bound<Options>(Key{"sources", KeyType::kTables, "", "the datasets, each with its own keys"}.each(
                          std::make_shared<const Catalog>(source_catalog())),
                      [](Options& options, const Setting& key) { options.sources = key.array(); }),
       option("samples", &Options::samples,
              "of an epoch, where sources have weights; default: as many as they have together")
           .may_be_absent()
           .at_least(1)
           .at_most(kMostSamples)}};
}

Kind<SplitOptions> SplitOptions::kind() {
  using Options = SplitOptions;
  return {
      kSplitKind,
      "A share of [data.train]'s samples, which training never sees, for all kinds of data that can count "
      "their samples. "
      "[data.eval] with split = 0.1 needs no kind.",
      {option("split", &Options::split,
              "the share of the samples, 0.1, or their number, 500; classes keep their shares")
           .required()
           .more_than(0)
           .at_most(kMostHeldOut),
       option("split_seed", &Options::split_seed,
              "draws the samples: the same seed and data, the same samples; when absent the recipe's seed, "
              "or 0")
           .may_be_absent()
           .at_least(0),
       option("split_by", &Options::split_by,
              "a column of a table or of mds, or an array: samples with an equal value stay together, in one "
              "of the two parts")
           .may_be_absent()}};
}

bool suits_held_out(const Setting& transform) {
  constexpr const char* kSuiting[] = {"resize",    "center_crop", "to_tensor",
                                      "normalize", "mask_tokens", "next_token"};
  const Setting* kind = transform.is_table() ? transform.find("kind") : nullptr;
  return kind && kind->is_text() && std::ranges::find(kSuiting, kind->text()) != std::end(kSuiting);
}

Setting held_out_transforms(const Setting& transforms, const std::string& path) {
  Setting::Array kept;
  for (const Setting& transform : transforms.array())
    if (suits_held_out(transform)) kept.push_back(transform);
  return Setting(std::move(kept), path, transforms.position);
}

Kind<SamplerOptions> SamplerOptions::kind() {
  using Options = SamplerOptions;
  return {"",
          "",
          {option("sampler", &Options::sampler,
                  "draws samples with replacement, as many as there are in an epoch; balanced: each class is "
                  "equally likely; weighted: by sampler_weights or sampler_column; when absent, each sample "
                  "comes once an epoch")
               .may_be_absent()
               .one_of({"balanced", "weighted"}),
           option("sampler_weights", &Options::sampler_weights,
                  "for sampler = \"weighted\": the weight of a sample of each class")
               .may_be_absent()
               .at_least(0),
           option("sampler_column", &Options::sampler_column,
                  "for sampler = \"weighted\": a column of a table or of mds, or an array, with a weight for "
                  "each sample")
               .may_be_absent()}};
}

}  // namespace tutti
