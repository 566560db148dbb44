import type { Reporter } from '../../base/reporter.ts';

/** Reports a message about the node of an agent. */
export type ReportAgentMessage = (level: 'info' | 'warning' | 'debug', code: string, message: string) => void;

export function agentReporter(reporter: Reporter, nodeName: string): ReportAgentMessage {
  return (level, code, message) => reporter.report({ level, code, message, host: nodeName });
}
