import type { Reporter } from '../base/reporter.ts';
import type { FactQueries, FactQuery } from './facts/query.ts';
import type { Operation } from './operation/operation.ts';
import { describePending } from './operation-kinds.ts';

const VERBOSITY = 2;

/** Logs the requests to a host with `-v 2`, without contents of files. */
export function requestLog(host: string, reporter: Reporter | undefined) {
  const isLogged = reporter !== undefined && (reporter.verbosity ?? VERBOSITY) >= VERBOSITY;
  const log = (code: string, message: string): void => reporter?.report({ level: 'debug', code, host, verbosity: VERBOSITY, message });
  return {
    queries: (queries: FactQueries): void => {
      if (isLogged) for (const query of Object.values(queries)) log('HOST_ASKED', describeQuery(query));
    },
    operations: (operations: readonly Operation[]): void => {
      if (isLogged) for (const operation of operations) log('HOST_DOES', describePending(operation));
    },
  };
}

function describeQuery(query: FactQuery): string {
  switch (query.kind) {
    case 'file':
      return `reads ${query.path}`;
    case 'list':
      return `lists ${query.path}`;
    case 'http':
      return `GET ${query.url}`;
    case 'command':
      return `runs ${query.argv.join(' ')}`;
  }
}
