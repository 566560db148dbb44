import type { Reporter } from '../base/reporter.ts';
import type { Question } from './facts/question.ts';
import type { Host } from './host.ts';
import type { Operation } from './plan/operation.ts';

/** A Host that tells with `-v 2` what it asks and does. Contents of files are never told. */
export function tellingHost(host: Host, reporter: Reporter): Host {
  if (reporter.verbosity !== undefined && reporter.verbosity < VERBOSITY) return host;
  const tell = (code: string, message: string): void =>
    reporter.report({ level: 'debug', code, host: host.name, verbosity: VERBOSITY, message });
  return {
    name: host.name,
    ask: (questions, options) => {
      for (const question of Object.values(questions)) tell('HOST_ASKED', describeQuestion(question));
      return host.ask(questions, options);
    },
    perform: (operations, options) => {
      for (const operation of operations) tell('HOST_DOES', describeOperation(operation));
      return host.perform(operations, options);
    },
    ...(host.dial === undefined ? {} : { dial: host.dial }),
    close: () => host.close(),
  };
}

const VERBOSITY = 2;

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
