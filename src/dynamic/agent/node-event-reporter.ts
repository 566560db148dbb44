import type { Reporter } from '../../base/reporter.ts';

/** Reports a message about the node of an agent. */
export type ReportNodeEvent = (level: 'info' | 'warning' | 'debug', code: string, message: string) => void;

export function nodeEventReporter(reporter: Reporter, nodeName: string): ReportNodeEvent {
  return (level, code, message) => reporter.report({ level, code, message, host: nodeName });
}
