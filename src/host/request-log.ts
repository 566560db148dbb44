import type { Reporter } from '../base/reporter.ts';
import type { FactQueries, FactQuery } from './facts/query.ts';
import type { Operation } from './operation/operation.ts';
import { describePending } from './operation-kinds.ts';

/** Logs the requests to a host with `-v 2`. */
interface RequestLog {
  queries(queries: FactQueries): void;
  operations(operations: readonly Operation[]): void;
}

/** Logs without contents of files, and nothing without a reporter of this verbosity. */
export function requestLog(host: string, reporter: Reporter | undefined): RequestLog {
  if (reporter === undefined || (reporter.verbosity !== undefined && reporter.verbosity < VERBOSITY)) return SILENT;
  const log = (code: string, message: string): void => reporter.report({ level: 'debug', code, host, verbosity: VERBOSITY, message });
  return {
    queries: (queries) => {
      for (const query of Object.values(queries)) log('HOST_ASKED', describeQuery(query));
    },
    operations: (operations) => {
      for (const operation of operations) log('HOST_DOES', describePending(operation));
    },
  };
}

const VERBOSITY = 2;

const SILENT: RequestLog = { queries: () => undefined, operations: () => undefined };

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
