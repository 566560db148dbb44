import { TextMemo } from '../memo.ts';
import { defineFact, type Fact } from './fact.ts';
import type { FileFact, Question } from './question.ts';

type FileFacts = Fact<ReadonlyMap<string, FileFact | null>>;

/** What stands at each of these paths, content included. For the same paths it is the same fact. */
export function fileFacts(paths: readonly string[]): FileFacts {
  return FACTS.get(paths.join('\0'), () => factsOf([...paths]));
}

/** Most hosts are asked for the same files. */
const FACTS = new TextMemo<FileFacts>();

function factsOf(paths: readonly string[]): FileFacts {
  const questions: Record<string, Question> = {};
  for (const path of paths) questions[path] = { kind: 'file', path };
  return defineFact(
    questions,
    (answers) => new Map(paths.map((path) => [path, (answers as Record<string, FileFact | null>)[path] ?? null])),
  );
}
