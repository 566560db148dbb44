import type { Reporter } from '../../base/reporter.ts';

/** Reports a message about the node of an agent. */
export type NodeReport = (level: 'info' | 'warning' | 'debug', code: string, message: string) => void;

export function nodeReport(reporter: Reporter, nodeName: string): NodeReport {
  return (level, code, message) => reporter.report({ level, code, message, host: nodeName });
}
