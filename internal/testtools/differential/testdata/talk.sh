# The agents that speak CLowl or CAP. Each reads its conversation, and says
# what comes next in it.
said=$(cat)

# heard tells whether a text is in the conversation.
heard() { case $said in *"$1"*) return 0 ;; *) return 1 ;; esac; }

done_with() { echo '{"p":"DONE","body":{"t":"work","d":{"summary":"'"$1"'"}}}'; }
hand_on() { echo '{"p":"DLGT","mid":"'"$id.$3"'","to":'"$1"',"body":{"t":"work","d":{"delegation_mode":"'"$2"'","description":"a part"}}}'; }
notice() { echo '{"type":"delegation_notice","task_id":"'"$id.$2"'","recipient_id":"'"$1"'","context_summary":"a part","attachments":[]}'; }

case $1 in
clowl) done_with "in CLowl" ;;
errs) echo '{"p":"ERR","body":{"t":"error","d":{"code":"E008","msg":"bad figures","retry":false}}}' ;;
asker) if heard '"p":"INF"'; then done_with "told what it asked"; else echo '{"p":"QRY","to":"ann","body":{"t":"work","d":{"text":"which one?"}}}'; fi ;;
hands-over) hand_on '"worker"' transfer 1 ;;
forks) hand_on '"text"' fork 1; done_with "by itself" ;;
is-helped) if heard '"p":"DONE"' || heard '"p":"ERR"'; then done_with "with help"; else hand_on '"slow"' assist 1; fi ;;
helped-badly) if heard '"p":"DONE"' || heard '"p":"ERR"'; then done_with "without help"; else hand_on '"fails"' assist 1; fi ;;
circle) hand_on '"circle-2"' transfer 1 ;;
circle-2) hand_on '"circle"' transfer 1 ;;
mute) ;;
cap) echo '{"type":"message","content":"in CAP","attachments":[{"type":"text_snippet","text":"x"}]}' ;;
cap-fails) echo '{"type":"error_response","error_code":504,"error_message":"too late"}' ;;
wonders) if heard 'the second one'; then echo '{"type":"message","content":"The second one it is."}'; else echo '{"type":"message","content":"Which one?"}'; fi ;;
impatient) echo '{"type":"message","content":"Shall I go on?"}' ;;
delegates) if heard '"type":"message"' || heard '"type":"error_response"'; then echo '{"type":"message","content":"All parts are there."}'; else notice slow 1; fi ;;
trespasses) if heard 'delegation_denied'; then echo '{"type":"message","content":"I may not."}'; else notice text 1; fi ;;
overseen) if heard 'look again'; then echo '{"type":"message","content":"looked again"}'; else echo '{"type":"message","content":"the draft"}'; fi ;;
overseer)
	if heard 'looked again'; then
		echo '{"type":"message","content":"right","attachments":[{"type":"python_object","object":{"decision":"approved"}}]}'
	else
		echo '{"type":"oversight_inquiry","inquiry":"look again, please"}'
	fi
	;;
rejects) echo '{"type":"message","content":"wrong","attachments":[{"type":"python_object","object":{"decision":"rejected"}}]}' ;;
esac
