import type { Question } from '../core/facts/question.ts';
import type { Operation } from '../core/plan/operation.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';

/** A Host that tells with `-v 2` what it asks and does. Contents of files are never told. */
export function tellingHost(host: Host, reporter: Reporter): Host {
  // Most runs tell nothing of it: the words are found when somebody reads them.
  const tell = (code: string, words: () => string): void =>
    reporter.report({
      level: 'debug',
      code,
      host: host.name,
      verbosity: 2,
      get message() {
        return words();
      },
    });
  return {
    name: host.name,
    ask: (questions, options) => {
      for (const question of Object.values(questions)) tell('HOST_ASKED', () => describeQuestion(question));
      return host.ask(questions, options);
    },
    perform: (operations, options) => {
      for (const operation of operations) tell('HOST_DOES', () => describeOperation(operation));
      return host.perform(operations, options);
    },
    ...(host.dial === undefined ? {} : { dial: host.dial }),
    close: () => host.close(),
  };
}

function describeQuestion(question: Question): string {
  switch (question.kind) {
    case 'file':
      return `reads ${question.path}`;
    case 'list':
      return `lists ${question.path}`;
    case 'http':
      return `GET ${question.url}`;
    case 'command':
      return `runs ${question.argv.join(' ')}`;
  }
}

function describeOperation(operation: Operation): string {
  if (operation.kind === 'run') return `runs ${operation.argv.join(' ')}`;
  return 'path' in operation ? `${operation.kind} ${operation.path}` : operation.kind;
}
