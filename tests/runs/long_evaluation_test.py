"""An evaluation may take longer than a rank may be silent."""
import tutti_run
from tutti_run import train


class LongEvaluation(tutti_run.RunTest):
    def test_a_long_evaluation_is_no_hang(self):
        run = self.folder / "run"
        train(run, recipe=tutti_run.EXAMPLES / "text_gpt.toml", train__max_duration="1ba",
              data__eval__split="train", data__eval__path=self.shorter_text(), train__hang_timeout="2sec")
        took_s = (run / "metrics.jsonl").stat().st_mtime - (run / "recipe.toml").stat().st_mtime
        self.assertGreater(took_s, 2.5)

    def shorter_text(self):
        """At least 5 s of evaluation on two ranks."""
        text = self.folder / "text.txt"
        text.write_text((tutti_run.EXAMPLES / "data" / "king_james.txt").read_text()[:500_000])
        return text


if __name__ == "__main__":
    tutti_run.main()
