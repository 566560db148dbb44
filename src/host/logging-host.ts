import type { Reporter } from '../base/reporter.ts';
import type { FactQuery } from './facts/query.ts';
import type { Host } from './host.ts';
import { describePending } from './operation-kinds.ts';

/** A Host that logs queries and operations with `-v 2`. Contents of files are never logged. */
export function loggingHost(host: Host, reporter: Reporter): Host {
  if (reporter.verbosity !== undefined && reporter.verbosity < VERBOSITY) return host;
  const notify = (code: string, message: string): void =>
    reporter.report({ level: 'debug', code, host: host.name, verbosity: VERBOSITY, message });
  return {
    name: host.name,
    query: (queries, options) => {
      for (const question of Object.values(queries)) notify('HOST_ASKED', describeQuery(question));
      return host.query(queries, options);
    },
    perform: (operations, options) => {
      for (const operation of operations) notify('HOST_DOES', describePending(operation));
      return host.perform(operations, options);
    },
    ...(host.dial === undefined ? {} : { dial: host.dial }),
    close: () => host.close(),
  };
}

const VERBOSITY = 2;

function describeQuery(question: FactQuery): string {
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
